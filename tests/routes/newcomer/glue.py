from shop import Shop

import audit


def service():
    return Shop(floor=1.0)


policy = audit.OneByOne(service, act="quote", observe="record_sale")
# python -m audit run glue:policy --claim "eps=1" --view prices_after --pair @left.json @right.json

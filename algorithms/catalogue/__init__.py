"""Every mechanism that has a name, by family: one line each in the family's file."""

from algorithms.catalogue.bandits import BANDITS
from algorithms.catalogue.broken_bandits import BROKEN_BANDITS
from algorithms.catalogue.broken_pricing import BROKEN_PRICING
from algorithms.catalogue.calibration import CALIBRATION
from algorithms.catalogue.peers import PEERS
from algorithms.catalogue.pricing import PRICING
from audit.entry import Entry

CATALOGUE: dict[str, Entry] = {
    **CALIBRATION,
    **BANDITS,
    **PRICING,
    **BROKEN_BANDITS,
    **BROKEN_PRICING,
    **PEERS,
}

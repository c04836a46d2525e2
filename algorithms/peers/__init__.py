"""Other libraries as subjects: one file each, imported when it is asked for (extra ``peers``).

Claim: what each library states for its own release, with its version as the source.
"""

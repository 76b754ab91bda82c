"""Before the data: which comparisons to score, and how many people to recruit.

It is larger than its budget because files of protocols, advice of ``check`` and plans of searches are here too, and
because the law of a study that does not exist yet has to be drawn (`predictive`).
"""

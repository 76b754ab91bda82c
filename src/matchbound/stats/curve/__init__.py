"""Statistics of whole curves: rates, influences, bands, limits."""

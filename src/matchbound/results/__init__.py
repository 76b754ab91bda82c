"""What calls hand out: frozen dataclasses whose methods give intervals."""

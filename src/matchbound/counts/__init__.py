"""What is counted: tallies at thresholds, curves, joint tallies. Nouns only, whatever the data behind them."""

"""What a runtime runs: the hook program, the MCP bridge, the plugin files, and the one local service behind them."""

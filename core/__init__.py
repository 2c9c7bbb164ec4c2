"""The memory itself: model, events, store, recall, boot, blocks, tools. No HTTP and no runtime in here."""

"""Explains why an object was reconciled, or why not, from the state of controllers, queues, caches and the journal.

`explainer` reads the state on the event loop and returns plain values (`facts`). `pages` serves them as JSON; `html` and `text` format
them. `calls` records the API calls of reconciles, `loops` detects write loops. Nothing here changes anything. Import the modules: an
operator that is never queried loads only `calls` and `loops`.
"""

"""Why was this reconciled, or why not: answers made of what controllers, queues, caches and the journal know at a moment.

`explainer` looks, on the event loop, and returns plain values (`facts`); `pages` serves them as JSON, `html` and `text` show them to people;
`calls` notes the API calls of reconciles, `loops` finds writes that repeat themselves. Nothing in here changes anything. Import the modules: an
operator that is asked nothing loads none but `calls` and `loops`.
"""

"""The context of a conversation: how much of the model's window it takes, and how it is made shorter.

The loop asks through `conversation.Context`, which measures before each request. Between two compactions a prompt only
grows at its end, so that providers' caches hold; a compaction is one break on purpose. It decides from the transcript
and from replies alone, both of which are recorded: no clock, no chance, no I/O but asking the model for a summary.

The order of the means: results that stand there twice; a summary by the model of what only it knows, beside what the
harness knows; turns dropped from the middle, which needs no model; the longest results cut. A call and its result are
never parted, and the first message is never touched.
"""

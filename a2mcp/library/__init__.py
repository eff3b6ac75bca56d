"""What can be read and what can be said: resources and prompts, beside the tools.

``spec`` says what they are, ``shelf`` who offers them, ``resources`` and ``prompts`` are the product's own.
"""

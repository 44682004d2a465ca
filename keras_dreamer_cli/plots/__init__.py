"""Figures and a report of runs, for `keras-dreamer plot`.

What is computed (`curves`, `errors`, `groups`, `logs`, `published`,
`recording`, `tables`) is apart from what is drawn (`draw_*`, `style`) and
written (`page`).
"""

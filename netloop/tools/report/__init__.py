"""A network, an engine and a run as one HTML page.

``page_model`` makes the data of the page, in plain Python; ``report`` puts them and the layout library into the
template, and the page draws itself in the browser.
"""

from netloop.tools.report.difference import report_difference as report_difference
from netloop.tools.report.model import page_model as page_model
from netloop.tools.report.page import report as report

"""report.html: the page of the paper's tables and figures."""

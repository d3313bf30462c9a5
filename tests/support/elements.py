"""What a page is made of."""

from html.parser import HTMLParser


class Elements(HTMLParser):
    """The names of a page's elements and attributes, the texts after their tags, its policy."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.names, self.texts, self.policy = [], set(), [], ""
        self.feed(html)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.names |= {name for name, _ in attributes}
        if ("http-equiv", "Content-Security-Policy") in attributes:
            self.policy = dict(attributes)["content"]

    def handle_data(self, text):
        self.texts.append((self.tags[-1] if self.tags else "", text))

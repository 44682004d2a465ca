import html.parser

from keras_dreamer_cli.plots import page
from keras_dreamer_cli.plots.style import Picture
from keras_dreamer_cli.plots.tables import Table


class Reader(html.parser.HTMLParser):
    """Checks that tags are closed; collects what the page would load."""

    def __init__(self, text):
        super().__init__()
        self.open, self.loaded, self.ids, self.links = [], [], set(), set()
        self.feed(text)
        assert not self.open, self.open

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.loaded += [
            attributes[name]
            for name in ("src", "srcset", "data")
            if name in attributes
        ]
        self.ids.add(attributes.get("id"))
        if tag == "link":
            self.loaded.append(attributes["href"])
        if tag == "a":
            self.links.add(attributes["href"].removeprefix("#"))
        if tag not in ("meta", "img", "source"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


PICTURE = Picture("returns", "Returns", "Lines: <means>.", None)


def example():
    figure = page.figure(PICTURE, {"light": b"one", "dark": b"two"})
    table = page.table(Table(["a", "b"], [["1", "<2>"]], frozenset([0])))
    return page.page(
        "A & B",
        "runs/a",
        {"seeds": "3"},
        [("Curves", [figure]), ("Numbers", [page.folded("all", table)])],
    )


def test_it_is_closed_and_loads_nothing():
    found = Reader(example())
    # b"two" and b"one" in base 64.
    assert found.loaded == [
        "data:image/png;base64,dHdv",
        "data:image/png;base64,b25l",
    ]
    assert found.links <= found.ids and len(found.links) == 2
    assert "url(" not in example() and "@import" not in example()


def test_pictures_have_the_size_they_were_drawn_in():
    # 300 pixels at 150 dots an inch are 2 inches of 96 pixels.
    png = b"0123456789abcdef" + (300).to_bytes(4, "big")
    text = page.figure(PICTURE, {"light": png, "dark": png})
    assert 'width="192"' in text


def test_text_is_escaped():
    text = example()
    assert "<title>A &amp; B</title>" in text
    assert "Lines: &lt;means&gt;." in text and "<td>&lt;2&gt;</td>" in text
    assert page.paragraph("<b>") == "<p>&lt;b&gt;</p>"


def test_marked_rows_and_dark_pages():
    assert '<tr class="marked"><td>1</td>' in example()
    assert "prefers-color-scheme: dark" in example()

"""The report in a real browser: Chromium, driven by chromedriver. Where there is none the run says so at its end."""

import json
import shutil
import warnings
from itertools import groupby

import numpy as np
import pandas as pd
import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from sklearn.exceptions import ConvergenceWarning

from plackett import Gibbs, PlackettLuceClassifier
from plackett.report import write_report

pytestmark = pytest.mark.browser

BAD = "<script>window.hurt = 1</script>"
WIDE, NARROW = 1200, 390
PAGE = {"width": 718, "height": 1000, "deviceScaleFactor": 1, "mobile": False}  # A4 without margins
SWITCHES = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--no-first-run",
)


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """A report with every figure there is, and names that try to run code or are very long."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(90, 4)), columns=[BAD, "w" * 120, "height", "width"])
    labels = np.array(["<img src=x onerror=window.hurt=1>", "tall", "wide"])
    y = pd.Series(labels[np.argmax(X.to_numpy()[:, [0, 2, 3]] + rng.gumbel(size=(90, 3)) / 3, axis=1)], name="kind")
    clf = PlackettLuceClassifier(
        Gibbs(draws=60, tune=60, chains=2, moves="none"), shape=0.1, random_state=0, features="exp"
    )
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        clf.fit(X[:60], y[:60])
    path = tmp_path_factory.mktemp("report") / "report.html"
    write_report(clf, X[:60], y[:60], path, title=f"A report {BAD}", test=(X[60:], y[60:]))
    return path.as_uri()


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    for switch in (*SWITCHES, f"--user-data-dir={tmp_path_factory.mktemp('chromium')}"):
        options.add_argument(switch)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))
    yield driver
    driver.quit()


@pytest.fixture
def opened(browser, address):
    """Opens the report at a width, in light or dark."""

    def look(width=WIDE, scheme="light"):
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width == NARROW}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
        browser.get_log("browser")
        browser.get_log("performance")
        browser.get(address)
        assert browser.execute_script("return window.innerWidth") == width
        return browser

    return look


def requests(driver):
    messages = [json.loads(entry["message"])["message"] for entry in driver.get_log("performance")]
    return [m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"]


def test_no_console_message_and_no_outside_request(opened, address):
    page = opened()
    page.find_elements(By.CSS_SELECTOR, "th button")[0].click()
    assert page.get_log("browser") == []
    asked = requests(page)
    assert asked[0] == address
    assert [url for url in asked[1:] if not url.startswith("data:")] == []


def test_names_do_not_run(opened):
    page = opened()
    assert page.execute_script("return window.hurt") is None
    assert page.find_element(By.TAG_NAME, "h1").text == f"A report {BAD}"
    assert len(page.find_elements(By.TAG_NAME, "script")) == 1
    assert page.find_elements(By.TAG_NAME, "img") == []
    page.execute_script(
        "const s = document.createElement('script'); s.text = 'window.hurt = 1'; document.body.append(s)"
    )
    assert page.execute_script("return window.hurt") is None  # the policy of the page lets no other script run


@pytest.mark.parametrize("width", [WIDE, NARROW])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_figure_is_visible(opened, width, scheme):
    page = opened(width, scheme)
    figures = page.find_elements(By.CSS_SELECTOR, "figure svg")
    assert len(figures) == 11 == len(page.find_elements(By.TAG_NAME, "figure"))
    ink = page.execute_script("return getComputedStyle(document.documentElement).color")
    for drawing in figures:
        box = drawing.rect
        assert drawing.is_displayed() and box["width"] > 250 and box["height"] > 120
        assert box["x"] >= 0 and box["x"] + box["width"] <= width
        assert len(drawing.get_attribute("aria-label")) > 30 and drawing.get_attribute("role") == "img"
        words = drawing.find_elements(By.TAG_NAME, "text")
        assert len(words) >= 5
        assert page.execute_script("return getComputedStyle(arguments[0]).fill", words[0]) == ink
        marks = (
            "return [...arguments[0].querySelectorAll('path, use')].filter(e => e.getBoundingClientRect().width).length"
        )
        assert page.execute_script(marks, drawing) > 5


@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_nothing_scrolls_sideways(opened, width):
    page = opened(width)
    assert page.execute_script("return document.documentElement.scrollWidth") <= width
    assert page.execute_script("return document.body.scrollWidth") <= width
    outside = """return [...document.querySelectorAll('body *')].filter(e => !e.closest('.scroll, .skip, .unseen, svg')
        && e.getBoundingClientRect().right > innerWidth + 1).map(e => e.outerHTML.slice(0, 80))"""
    assert page.execute_script(outside) == []


def column(table, place):
    return [row.find_elements(By.XPATH, "./*")[place] for row in table.find_elements(By.CSS_SELECTOR, "tbody tr")]


def test_the_weight_table_sorts_by_mouse_and_keyboard(opened):
    page = opened()
    table = page.find_element(By.CSS_SELECTOR, "table.sortable")
    heads = table.find_elements(By.CSS_SELECTOR, "thead th")
    assert [head.get_attribute("aria-sort") for head in heads] == ["none", "none", "descending", *["none"] * 5]

    def values(place):
        return [float(cell.get_attribute("data-value")) for cell in column(table, place)]

    as_written = values(2)
    assert as_written == sorted(as_written, reverse=True) and len(set(as_written)) > 5
    heads[2].find_element(By.TAG_NAME, "button").click()
    assert values(2) == sorted(as_written) and heads[2].get_attribute("aria-sort") == "ascending"
    assert page.find_element(By.ID, "said").get_attribute("textContent") == "Sorted by Median, ascending."
    button = heads[4].find_element(By.TAG_NAME, "button")
    page.execute_script("arguments[0].focus()", button)
    button.send_keys(Keys.ENTER)
    upper = values(4)
    assert upper == sorted(upper, reverse=True)
    assert [head.get_attribute("aria-sort") for head in heads] == ["none"] * 4 + ["descending"] + ["none"] * 3
    button.send_keys(Keys.SPACE)
    assert values(4) == sorted(upper)
    heads[0].find_element(By.TAG_NAME, "button").click()
    names = [cell.text for cell in column(table, 0)]
    assert len([name for name, _ in groupby(names)]) == len(set(names)) > 3
    heads[0].find_element(By.TAG_NAME, "button").click()
    runs = [name for name, _ in groupby(cell.text for cell in column(table, 0))]
    assert runs == [name for name, _ in groupby(names)][::-1]


def test_the_keyboard_reaches_links_tables_and_headings(opened):
    page = opened()
    reached = []
    for _ in range(50):
        page.switch_to.active_element.send_keys(Keys.TAB)
        here = page.switch_to.active_element
        if here.tag_name == "body":
            break
        reached.append((here.tag_name, here.get_attribute("class")))
        outline = page.execute_script("return getComputedStyle(arguments[0]).outline", here)
        assert "solid 3px" in outline, (outline, here.get_attribute("outerHTML")[:80])
    assert reached[0] == ("a", "skip") and ("div", "scroll") in reached and ("button", "") in reached


def test_headings_are_in_order_and_ids_unique(opened):
    page = opened()
    levels = [int(h.tag_name[1]) for h in page.find_elements(By.CSS_SELECTOR, "h1, h2, h3, h4")]
    assert levels[0] == 1 and levels.count(1) == 1 and np.diff(levels).max() <= 1
    ids = page.execute_script("return [...document.querySelectorAll('[id]')].map(e => e.id)")
    assert len(ids) == len(set(ids))
    for link in page.find_elements(By.CSS_SELECTOR, "nav a"):
        assert link.get_attribute("href").split("#")[1] in ids


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_contrast(opened, scheme):
    """WCAG 2.2, success criterion 1.4.3: 4.5 to 1."""
    page = opened(scheme=scheme)
    script = """
    const seen = [];
    for (const e of document.querySelectorAll('h1, h2, p, a, td, th, caption, figcaption, dt, dd, svg text')) {
      let back = e;
      while (back && getComputedStyle(back).backgroundColor === 'rgba(0, 0, 0, 0)') back = back.parentElement;
      const ink = getComputedStyle(e), own = e.tagName === 'text' ? ink.fill : ink.color;
      seen.push([e.tagName, own, back ? getComputedStyle(back).backgroundColor : null]);
    }
    return seen"""
    pairs = {tuple(entry) for entry in page.execute_script(script)}
    assert len(pairs) > 8

    def light(colour):
        c = np.array([float(v) for v in colour[colour.index("(") + 1 : -1].split(",")[:3]]) / 255
        return np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4) @ [0.2126, 0.7152, 0.0722]

    papers = set()
    for tag, ink, paper in pairs:
        high, low = sorted((light(ink), light(paper)), reverse=True)
        assert (high + 0.05) / (low + 0.05) >= 4.5, (tag, ink, paper)
        papers.add(light(paper) < 0.2)
    assert papers == {scheme == "dark"}


def test_nothing_is_cut_off_in_print(opened):
    page = opened(width=WIDE, scheme="dark")
    page.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", PAGE)
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        assert page.execute_script("return document.documentElement.scrollWidth") <= PAGE["width"]
        right = "e => e.getBoundingClientRect().right > innerWidth"
        cells = "[...document.querySelectorAll('td, th, svg')]"
        assert page.execute_script(f"return {cells}.filter({right}).length") == 0
        paper = "getComputedStyle(document.documentElement).backgroundColor"
        assert page.execute_script(f"return {paper}") == "rgb(255, 255, 255)"
    finally:
        page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})

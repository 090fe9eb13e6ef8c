// The page of the chat: one terminal, one WebSocket. Everything the app needs of a terminal is
// here; nothing of the chat is.
"use strict";

// The terminal's own colours, those of the app's two themes (app/themes.py): what an app finds
// when it asks the terminal for its background.
const COLOURS = {
  dark: { background: "#15171c", foreground: "#d6d9e0", cursor: "#82aaff", selectionBackground: "#3b4f7a" },
  light: { background: "#fbfaf7", foreground: "#24272e", cursor: "#2c5fb3", selectionBackground: "#b9cdee" },
};
// Only fonts of the system: the page loads none. First one whose lines of boxes meet, then Chinese.
const FONTS =
  'Menlo, Monaco, "DejaVu Sans Mono", "PingFang SC", "Hiragino Sans GB", ' +
  '"Noto Sans Mono CJK SC", monospace';
const FONT_SIZE = { least: 8, usual: 14, most: 40 };
// A pixel more at least than the font's own height, in every size: rounded down to whole pixels, its
// last one is the underscore's, and the row below covers it.
const LINE_HEIGHT = 1.12;
const FONT_KEY = "font-size";
const OCCUPIED = 4409; // see server.py
const RETRY_MS = [100, 200, 400, 800, 1600, 3000];
const MAC = navigator.platform.startsWith("Mac");

// The link worked once and is spent: a reload must go by the cookie.
history.replaceState(null, "", location.pathname);

const element = (id) => document.getElementById(id);
const light = matchMedia("(prefers-color-scheme: light)");
const colours = () => (light.matches ? COLOURS.light : COLOURS.dark);

const terminal = new Terminal({
  allowProposedApi: true, // for the widths of Unicode 11
  fontFamily: FONTS,
  fontSize: Number(sessionStorage.getItem(FONT_KEY)) || FONT_SIZE.usual,
  lineHeight: LINE_HEIGHT,
  theme: colours(),
  scrollback: 0, // the app scrolls by itself
  macOptionClickForcesSelection: true,
  linkHandler: { activate: (_event, address) => openLink(address) },
});
const fit = new FitAddon.FitAddon();
terminal.loadAddon(fit);
terminal.loadAddon(new Unicode11Addon.Unicode11Addon());
terminal.unicode.activeVersion = "11";
terminal.loadAddon(new WebLinksAddon.WebLinksAddon((_event, address) => openLink(address)));
terminal.open(element("terminal"));
fit.fit();
terminal.focus();

light.addEventListener("change", () => { terminal.options.theme = colours(); });
window.addEventListener("focus", () => terminal.focus());
terminal.onRender(matchMargin);
new ResizeObserver(() => fit.fit()).observe(element("terminal"));

// The margin around the characters has the colour of the app's own corner.
function matchMargin() {
  const corner = terminal.buffer.active.getLine(0)?.getCell(0);
  document.body.style.background = corner?.isBgRGB()
    ? "#" + corner.getBgColor().toString(16).padStart(6, "0")
    : terminal.options.theme.background;
}

// A link is opened by a click of the user's, never by the app alone, and only on the web.
function openLink(address) {
  if (/^https?:\/\//i.test(address)) window.open(address, "_blank", "noopener,noreferrer");
}

// Copy and paste -----------------------------------------------------------------------------

// OSC 52 writes to the clipboard. It is never answered: an app does not read what was copied.
terminal.parser.registerOscHandler(52, (data) => {
  const encoded = data.slice(data.indexOf(";") + 1);
  if (encoded !== "?") {
    try {
      const bytes = Uint8Array.from(atob(encoded), (character) => character.charCodeAt(0));
      copy(new TextDecoder().decode(bytes));
    } catch (error) {
      console.warn("not a copy:", error);
    }
  }
  return true;
});

function copy(text) {
  navigator.clipboard?.writeText(text).catch((error) => console.warn("not copied:", error));
}

function setFontSize(size) {
  terminal.options.fontSize = Math.min(Math.max(size, FONT_SIZE.least), FONT_SIZE.most);
  sessionStorage.setItem(FONT_KEY, terminal.options.fontSize);
  fit.fit();
}

const FONT_KEYS = {
  "=": () => setFontSize(terminal.options.fontSize + 1),
  "+": () => setFontSize(terminal.options.fontSize + 1),
  "-": () => setFontSize(terminal.options.fontSize - 1),
  "0": () => setFontSize(FONT_SIZE.usual),
};

// False: the terminal leaves the key to the browser.
terminal.attachCustomKeyEventHandler((event) => {
  if (event.isComposing || event.altKey || !(MAC ? event.metaKey : event.ctrlKey)) return true;
  const key = event.key.toLowerCase();
  if (FONT_KEYS[key]) {
    if (event.type === "keydown") FONT_KEYS[key]();
    event.preventDefault();
    return false;
  }
  if (key === "v") return false; // the browser's paste comes as a paste, not as a key
  if (key === "c" && terminal.hasSelection()) {
    if (event.type === "keydown") {
      copy(terminal.getSelection());
      terminal.clearSelection();
      event.preventDefault();
    }
    return false;
  }
  return true;
});

// The connection ------------------------------------------------------------------------------

const encoder = new TextEncoder();
let socket = null;
let attempts = 0;
let over = false;

function connect() {
  const address = new URL("terminal", location.href);
  address.protocol = "ws:";
  const mine = new WebSocket(address);
  mine.binaryType = "arraybuffer";
  socket = mine;
  mine.onopen = () => {
    terminal.reset();
    sendSize();
  };
  mine.onmessage = (message) => {
    attempts = 0;
    if (typeof message.data === "string") {
      ended(JSON.parse(message.data).ended);
    } else {
      hideNotice();
      terminal.write(new Uint8Array(message.data));
    }
  };
  mine.onclose = (event) => {
    if (over || socket !== mine) return;
    const wait = RETRY_MS[attempts++];
    if (wait !== undefined) {
      setTimeout(connect, wait);
    } else if (event.code === OCCUPIED) {
      showNotice("The chat is open in another page", "Close that one first; a chat has one page at a time.", { again: true });
    } else {
      showNotice("The chat is not running any more", "Start it again to go on; what was said is kept.", { again: true });
    }
  };
}

function send(data) {
  if (socket && socket.readyState === WebSocket.OPEN) socket.send(data);
}

function sendSize() {
  send(JSON.stringify({ size: [terminal.cols, terminal.rows], light: light.matches }));
}

terminal.onData((text) => send(encoder.encode(text)));
terminal.onBinary((text) => send(Uint8Array.from(text, (character) => character.charCodeAt(0))));
terminal.onResize(sendSize);
terminal.onTitleChange((title) => { document.title = title || "MiniCPM5"; });

// Notices -------------------------------------------------------------------------------------

function ended({ well, words, log }) {
  over = true;
  if (well) {
    showNotice("The chat has ended", "What was said is kept. You can close this page.");
    window.close(); // works in a page that a script opened; others stay with the notice
  } else {
    showNotice("The chat had to end", "What was said is kept. Start it again to go on.", { words, log });
  }
}

function showNotice(title, text, { words = "", log = "", again = false } = {}) {
  element("notice-title").textContent = title;
  element("notice-text").textContent = text;
  element("notice-words").textContent = words;
  element("notice-words").hidden = !words;
  element("notice-log").textContent = log ? `The log is in ${log}` : "";
  element("notice-log").hidden = !log;
  element("notice-button").hidden = !again;
  element("notice").hidden = false;
  if (again) element("notice-button").focus();
}

function hideNotice() {
  if (element("notice").hidden) return;
  element("notice").hidden = true;
  terminal.focus();
}

element("notice-button").addEventListener("click", () => {
  attempts = 0;
  hideNotice();
  connect();
});

connect();

"""The terminal app: the screens, the model's life, the colours, and the way out."""

from __future__ import annotations

import asyncio
import contextlib
import io
import logging
import os
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import ClassVar

from rich.console import Console, RenderableType
from textual import work
from textual.app import App, SystemCommand
from textual.binding import Binding
from textual.events import TextSelected
from textual.screen import Screen
from textual.worker import WorkerFailed

from minicpm5_mac import locations
from minicpm5_mac.app import interrupt, slash_commands, window_title
from minicpm5_mac.app.event_pump import EventPump
from minicpm5_mac.app.flows import copying, models, settings
from minicpm5_mac.app.interrupt import Rung
from minicpm5_mac.app.key_help import key_sections, spelled
from minicpm5_mac.app.lenient_input import read_any_bytes
from minicpm5_mac.app.live_chat import LiveChat
from minicpm5_mac.app.lost_terminal import when_lost
from minicpm5_mac.app.model_places import refusal, short_name
from minicpm5_mac.app.model_state import ModelState, paused_text
from minicpm5_mac.app.options import AppOptions
from minicpm5_mac.app.screens.chat import ChatScreen
from minicpm5_mac.app.screens.help import Help
from minicpm5_mac.app.screens.log import LogViewer
from minicpm5_mac.app.terminal_keys import teach_terminal_keys
from minicpm5_mac.app.themes import THEMES, choose_theme
from minicpm5_mac.events import EngineStopped, Event, ModelFailed

LOOK_SECONDS = 1.0
"""How often the model process is looked after while no reply runs."""

START_NOTICE_SECONDS = 15.0
"""How long what is to be said at the start stays."""

SIGNALLED_SECONDS = 3.0
"""An app that was told to end by a signal has this long."""

LOG_WIDTH = 120
"""Columns of what is drawn for a log file."""

_log = logging.getLogger(__name__)


class ChatApp(App[None]):
    """Paints at once; the model starts behind the picture, in a process of its own."""

    TITLE = "MiniCPM5"
    BINDINGS: ClassVar = [
        Binding(
            "ctrl+c",
            "interrupt",
            "Stop the reply; then clear the draft; then twice to leave",
            priority=True,
        ),
        Binding("ctrl+q", "leave", "Leave", priority=True),
        Binding("f1", "help", "Keys and commands"),
        Binding("f8", "log", "Log files"),
        Binding("ctrl+p", "command_palette", "Find a command", priority=True),
    ]
    ENABLE_COMMAND_PALETTE = True
    CSS = """
    ToastRack { dock: top; align: right top; }
    Toast { background: $panel; max-width: 60; }
    App:nocolor .option-list--option-highlighted { text-style: reverse; }
    CommandPalette > Vertical { background: $surface; }
    CommandPalette SearchIcon { display: none; }
    """

    def __init__(self, options: AppOptions) -> None:
        # Without colours the terminal's own two are used: a picture in greys is not NO_COLOR.
        super().__init__(ansi_color="NO_COLOR" in os.environ)
        teach_terminal_keys()
        read_any_bytes()
        for theme in THEMES:
            self.register_theme(theme)
        self.options = options
        self.theme = choose_theme(options.theme, os.environ)
        self.live = LiveChat(options)
        self.model = ModelState(short_name(options.settings.model))
        self.theme_setting = options.theme
        self._armed_until = 0.0
        self._pump: EventPump | None = None

    # Life ---------------------------------------------------------------------------------------

    def get_default_screen(self) -> ChatScreen:
        return ChatScreen()

    @property
    def chat(self) -> ChatScreen:
        """The screen with the conversation, whatever lies above it."""
        screen = self.screen_stack[0]
        assert isinstance(screen, ChatScreen)
        return screen

    def on_mount(self) -> None:
        self._write(window_title.SAVE)
        self.title_window("")
        self._end_on_signals()
        self.begin_model()
        self.set_interval(LOOK_SECONDS, self._look_after_model)
        if self.options.notice:
            self.notify(self.options.notice, timeout=START_NOTICE_SECONDS)

    def title_window(self, conversation: str) -> None:
        """Say in the window's title which conversation this is."""
        title = f"{conversation} · {self.TITLE}" if conversation else str(self.TITLE)
        self._write(window_title.set_title(title))

    def _write(self, sequence: str) -> None:
        if self._driver is not None and not self.is_headless:
            self._driver.write(sequence)

    def action_leave(self) -> None:
        """Leave; what is written and said is kept."""
        self.chat.keep_draft_now()
        self._write(window_title.RESTORE)
        self.exit()

    def _end_on_signals(self) -> None:
        if not self.is_headless:
            loop = asyncio.get_running_loop()
            for number in (signal.SIGTERM, signal.SIGHUP):
                loop.add_signal_handler(number, self._end_at_once)
            when_lost(0, lambda: self._terminal_is_lost(loop))

    def _terminal_is_lost(self, loop: asyncio.AbstractEventLoop) -> None:
        self._end_soon()  # from this thread: the loop may be waiting for the terminal itself
        loop.call_soon_threadsafe(self.action_leave)

    def _end_at_once(self) -> None:
        self._end_soon()
        self.action_leave()

    def _end_soon(self) -> None:
        # See lost_terminal.py: leaving may never end. The model process ends with this one.
        end = threading.Timer(SIGNALLED_SECONDS, os._exit, (1,))
        end.daemon = True
        end.start()

    def _handle_exception(self, error: Exception) -> None:
        # Textual's own way prints a traceback with the values of variables in it.
        _log.error("unexpected", exc_info=error)
        if isinstance(error, WorkerFailed) and (self._exit or self._closing or self._closed):
            return  # it had something to show on a screen that is going away
        if isinstance(error, WorkerFailed):
            # Of one task only: the app goes on. Textual's tests look at these two.
            self._exception = self._exception or error
            self._exception_event.set()
            self.chat.complain(error.error)
        else:
            super()._handle_exception(error)

    def panic(self, *renderables: RenderableType) -> None:
        # How the thread that reads the terminal ends the app: with a traceback, and well.
        told = Console(file=io.StringIO(), width=LOG_WIDTH)
        with told.capture() as text:
            told.print(*renderables)
        _log.error("unexpected\n%s", text.get())
        self._return_code = 1
        self._fatal_error()

    def _fatal_error(self) -> None:
        with contextlib.suppress(Exception):
            self.chat.keep_draft_now()
        # One alone: Textual has words of its own, for developers, where there are two.
        self._exit_renderables[:] = [
            "The app had to end because of a fault in it; the conversation is kept.\n"
            f"`minicpm5-mac chat --continue` goes on with it. Log: {locations.log_dir()}"
        ]
        self._close_messages_no_wait()

    # The model ----------------------------------------------------------------------------------

    @work
    async def begin_model(self) -> None:
        """Load the model to begin with, after asking where it would have to be downloaded."""
        wanted = self.options.settings.model
        given = "model" in self.options.given
        name = wanted if given else await models.first_model(self, wanted)
        if name == models.LEAVE:
            self.action_leave()
        elif name is None:
            failed = ModelFailed("not_found", "No model is loaded.")
            self.model = self.model.after([failed])
            self.chat.show_model(self.model)
        elif name == wanted:
            self._run_model(self.live.start)
        else:
            self.load_model(name)

    def load_model(self, name: str) -> None:
        """End the model that is loaded and load another."""
        self.model = ModelState(short_name(name), stage="starting")
        self._run_model(lambda: self.live.start_again(name))

    def action_restart_model(self) -> None:
        """Start the model process again; the conversation stays."""
        if not self.model.starting:
            self.model = ModelState(self.model.name, stage="starting")
            self._run_model(self.live.start_again)

    def pause_download(self) -> None:
        """End the model process while it downloads: what came is kept, and f5 goes on from it."""
        failed = ModelFailed("download", paused_text(self.model), "What came is kept.")
        self._pump = None  # what the process still says is of no interest
        self.model = self.model.after([failed])
        self.chat.show_model(self.model)
        self.run_worker(self.live.stop_model, thread=True)

    @work
    async def action_models(self, argument: str = "") -> None:
        name = argument or await models.choose_model(self, self.live.settings.model)
        if name and (name != self.live.settings.model or self.model.ready is None):
            refused = await asyncio.to_thread(refusal, name)
            if refused is None:
                self.load_model(name)
            else:  # what is loaded stays
                self.notify(str(refused), severity="error", timeout=8, markup=False)

    def _run_model(self, events: Callable[[], Iterator[Event]]) -> None:
        pump: EventPump | None = None

        def deliver(batch: list[Event]) -> None:
            if self._pump is pump:  # a model that was given up may still speak
                self.model = self.model.after(batch)
                self.chat.show_model(self.model)

        def finished(error: Exception | None) -> None:
            if self._pump is pump and self.model.starting:
                text = f"The model could not be started: {error or 'it ended without a word'}"
                self.model = self.model.after([ModelFailed("error", text, "f8 shows the log.")])
                self.chat.show_model(self.model)
            if self._pump is pump and self.model.failed is not None:
                self._model_failed(self.model.failed)

        pump = self._pump = EventPump(self, events, deliver, finished)
        self.chat.show_model(self.model)

    @work
    async def _model_failed(self, failed: ModelFailed) -> None:
        name = await models.after_failure(self, self.live.settings.model, failed)
        if name is not None:
            self.load_model(name)

    def _look_after_model(self) -> None:
        idle = self.model.ready is not None and not self.chat.reply.running
        if idle and (stopped := self.live.stopped()) is not None:
            self.model_stopped(stopped)

    def model_stopped(self, event: EngineStopped) -> None:
        """A reply's events said that the model process is gone."""
        self.model = self.model.after([event])
        self.chat.show_model(self.model)

    # Keys and commands --------------------------------------------------------------------------

    def action_interrupt(self) -> None:
        """One press of Ctrl+C."""
        chat = self.chat
        if not chat.reply.running:
            if self.screen is not chat:
                self.screen.dismiss(None)
                return
            if selected := self.screen.get_selected_text() or chat.selected_draft():
                self.copy_to_clipboard(selected)
                self.screen.clear_selection()
                return
        armed = time.monotonic() < self._armed_until
        match interrupt.rung(replying=chat.reply.running, draft=chat.draft, armed=armed):
            case Rung.STOP_REPLY:
                chat.action_stop()
            case Rung.CLEAR_DRAFT:
                chat.clear_draft()
            case Rung.ARM:
                self._armed_until = time.monotonic() + interrupt.ARMED_SECONDS
                self.notify("Press ctrl+c again to leave.", timeout=interrupt.ARMED_SECONDS)
            case Rung.QUIT:
                self.action_leave()

    def get_key_display(self, binding: Binding) -> str:
        """Keys are spelled the same way in every footer and in the help."""
        return binding.key_display or spelled(binding.key)

    def run_slash_command(self, command: slash_commands.SlashCommand, argument: str = "") -> None:
        """Do what a command says: an action of the chat, or of the app."""
        name = f"action_{command.action}"
        action = getattr(self.chat, name, None) or getattr(self, name)
        if command.argument:
            action(argument)
        else:
            action()

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        for command in slash_commands.COMMANDS:
            yield SystemCommand(
                f"{command.description}  /{command.name}",
                "",
                lambda command=command: self.run_slash_command(command),
            )

    def action_help(self) -> None:
        if isinstance(self.screen, Help):
            return
        self.push_screen(Help(key_sections([*self.chat.help_nodes(), ("Everywhere", self)])))

    def action_log(self) -> None:
        if not isinstance(self.screen, LogViewer):
            self.push_screen(LogViewer(locations.log_dir()))

    @work
    async def action_theme_choice(self, argument: str = "") -> None:
        choice = argument or await settings.choose_colours(self, self.theme_setting)
        if choice:
            self.theme_setting = choice
            self.theme = choose_theme(choice, os.environ)

    # Copying ------------------------------------------------------------------------------------

    def copy_to_clipboard(self, text: str) -> None:
        """Every copy of every widget comes through here, so that none claims too much."""
        self.copy(text, "Selection")

    @work(group="copy")
    async def copy(self, text: str, what: str) -> None:
        """Copy and say what became of it. what: as in "Reply"."""
        await copying.copy(self, text, what, super().copy_to_clipboard)

    def on_text_selected(self, event: TextSelected) -> None:
        if self.options.copy_on_select and (text := self.screen.get_selected_text()):
            self.copy_to_clipboard(text)

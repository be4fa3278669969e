"""What is wrong with an expression that is not in the grammar, in the words of cel-go.

cel-go's parser is made by ANTLR. Which errors it finds, and what it expects where, follows from the grammar and from how ANTLR predicts and
recovers: https://github.com/antlr/antlr4/blob/4.13.0/runtime/Go/antlr/v4/error_strategy.go. That is repeated here as far as messages show it.

One thing is not: cel-go also looks for errors of meaning, such as reserved names, in what it could read of the expression.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Final, NamedTuple, TypeAlias

from ctrlruntime.cel.failures import Issue
from ctrlruntime.cel.grammar import BACK, Choice, Graph, Level, Many, Maybe, Rule, Stack, Step, Take, graph_of_grammar
from ctrlruntime.cel.syntax import Source
from ctrlruntime.cel.tokens import DEEPEST, END, KINDS, NAME, SPACE, SYMBOLS, BadText, Token

_MOST_ERRORS: Final = 100
_MOST_RECOVERIES: Final = 30
_MOST_SKIPPED: Final = 256


# Prediction


class _Config(NamedTuple):
    """A way to go on: of which choice, in which state, and where its rules come back."""

    choice: int
    state: int
    stack: Stack
    is_out: bool = False
    """It has left the rule in which the choice is."""


class _Outlook:
    """The configurations after some tokens, what they decide, and those after one token more.

    Outlooks that do not depend on what follows the rule here are kept for all expressions, as ANTLR keeps the states of its DFA.
    """

    __slots__ = ("after", "choice", "configs", "is_ambiguous", "over")

    def __init__(self, graph: Graph, configs: Collection[_Config], *, is_full: bool) -> None:
        self.configs = configs
        self.after: dict[str, _Outlook | None] = {}
        choices = {config.choice for config in configs}
        self.is_ambiguous = len(choices) > 1 and _is_ambiguous(configs, is_full=is_full)
        self.choice = min(choices) if len(choices) == 1 or (is_full and self.is_ambiguous) else None
        over = [
            config.choice
            for config in configs
            if config.is_out or (config.state in graph.last and config.stack is None)
        ]
        self.over = min(over, default=-1)
        """The choice that has left the rule of the choice: it is taken where no token is allowed."""


def _is_ambiguous(configs: Iterable[_Config], *, is_full: bool) -> bool:
    places: dict[tuple[int, Stack], set[int]] = {}
    states: dict[int, set[int]] = {}
    for config in configs:
        places.setdefault((config.state, config.stack), set()).add(config.choice)
        states.setdefault(config.state, set()).add(config.choice)
    if is_full:
        return len({min(choices) for choices in places.values()}) == 1
    return any(len(choices) > 1 for choices in places.values()) and all(len(choices) > 1 for choices in states.values())


_KEPT: Final = 5_000
_outlooks: Final[dict[object, _Outlook]] = {}
"""By where a choice begins, or by the configurations. There are about a hundred; the bound is for memory."""


def _kept(key: object, make: Callable[[], _Outlook]) -> _Outlook:
    found = _outlooks.get(key)
    if found is None:
        if len(_outlooks) >= _KEPT:
            _outlooks.clear()
        found = _outlooks[key] = make()
    return found


class _Prediction:
    """Which choice the tokens allow: first whatever follows the rule anywhere, then, if that does not decide, what follows it here."""

    def __init__(self, graph: Graph, look: Callable[[int], str], precedence: int, *, has_levels: bool) -> None:
        self._has_levels = has_levels
        self._graph = graph
        self._look = look
        self._precedence = precedence

    def choose(self, targets: Sequence[int], stack: Stack) -> tuple[int, int]:
        """Return the choice, or -1, and how far ahead the last token is that was looked at."""
        key = (tuple(targets), self._precedence, self._has_levels)
        found = self._run(_kept(key, lambda: self._begin(targets, None, is_full=False)), is_full=False)
        return found or self._run(self._begin(targets, stack, is_full=True), is_full=True) or (0, 0)

    def _begin(self, targets: Sequence[int], stack: Stack, *, is_full: bool) -> _Outlook:
        starts = [_Config(choice, target, stack) for choice, target in enumerate(targets)]
        configs = self._close(starts, is_full=is_full, is_start=True)
        if self._has_levels and not is_full:  # an operator belongs to the innermost loop that may take it
            taken = {(config.state, config.stack) for config in configs if not config.choice}
            configs = [config for config in configs if not config.choice or (config.state, config.stack) not in taken]
        return _Outlook(self._graph, configs, is_full=is_full)

    def _run(self, outlook: _Outlook, *, is_full: bool) -> tuple[int, int] | None:
        """As `choose`; None if the choices differ only in what follows the rule here."""
        for ahead in count():
            kind = self._look(ahead)
            if kind not in outlook.after:
                outlook.after[kind] = self._move(outlook, kind, is_full=is_full)
            after = outlook.after[kind]
            if after is None:
                return outlook.over, ahead
            outlook = after
            if outlook.choice is not None:
                return outlook.choice, ahead
            if outlook.is_ambiguous:
                return None
            if kind == END:
                break
        return min(config.choice for config in outlook.configs), 0

    def _move(self, outlook: _Outlook, kind: str, *, is_full: bool) -> _Outlook | None:
        moved = [
            config._replace(state=edge.target)
            for config in outlook.configs
            for edge in self._graph.edges[config.state]
            if kind in edge.kinds
        ]
        reached = self._close(moved, is_full=is_full)
        if not reached:
            return None
        if is_full:
            return _Outlook(self._graph, reached, is_full=True)
        return _kept(frozenset(reached), lambda: _Outlook(self._graph, reached, is_full=False))

    def _close(self, configs: Iterable[_Config], *, is_full: bool, is_start: bool = False) -> list[_Config]:
        """Return the configurations that take a token next, or are over."""
        graph, found, seen = self._graph, list[_Config](), set[_Config]()
        waiting = [(config, 0) for config in configs]
        while waiting:
            config, depth = waiting.pop()
            if config in seen:
                continue
            seen.add(config)
            if config.state in graph.last:
                waiting += ((each, depth - 1) for each in self._returns(config, is_full=is_full))
                if config.stack is None and (is_full or not graph.after[graph.last[config.state]]):
                    found.append(config)
            edges = graph.edges[config.state]
            if any(edge.kinds for edge in edges):
                found.append(config)
            for edge in edges:
                if edge.rule:
                    inner = config._replace(state=graph.first[edge.rule], stack=(edge.target, config.stack))
                    waiting.append((inner, depth + 1))
                elif not edge.kinds and not (
                    is_start and depth == 0 and edge.precedence and edge.precedence < self._precedence
                ):
                    waiting.append((config._replace(state=edge.target), depth))
        return found

    def _returns(self, config: _Config, *, is_full: bool) -> Iterator[_Config]:
        if config.stack is not None:
            yield config._replace(state=config.stack[0], stack=config.stack[1])
        elif not is_full:
            for state in self._graph.after[self._graph.last[config.state]]:
                yield config._replace(state=state, is_out=True)


# The parser


class _FailureError(Exception):
    """A rule cannot go on."""

    def __init__(self, message: str, token: Token) -> None:
        self.message = message
        self.token = token


class _StopError(Exception):
    """Too much is wrong; the text is one more error, without a place."""


_Call: TypeAlias = "Generator[_Call, None, None]"
"""What a rule does; it yields the calls of the rules in it."""


class _Frame(NamedTuple):
    rule: Rule
    after: int
    """The state after the rule; -1 for the first."""


@dataclass
class _Parser:
    source: Source
    tokens: list[Token]
    bad: deque[BadText]
    issues: list[Issue] = field(default_factory=list[Issue])
    at: int = 0
    state: int = 0
    frames: list[_Frame] = field(default_factory=list[_Frame])
    is_recovering: bool = False
    last_error: int = -1
    last_states: set[int] = field(default_factory=set[int])
    recoveries: int = 0

    def __post_init__(self) -> None:
        self._graph = graph_of_grammar()
        self._visible = [index for index, token in enumerate(self.tokens) if token.kind != SPACE]
        self._open = Counter[str]()

    # Tokens

    def _token(self, ahead: int = 0) -> Token:
        """Return a token; what is no token before it is reported now, since cel-go reads no further than it looks."""
        token = self.tokens[self._visible[min(self.at + ahead, len(self._visible) - 1)]]
        while self.bad and self.bad[0].at < token.at:
            bad = self.bad.popleft()
            self.note(f"token recognition error at: '{bad.text}'", bad.at)
        return token

    def _kind(self, ahead: int = 0) -> str:
        return self._token(ahead).kind

    def _consume(self) -> None:
        if self._kind() != END:
            self.at += 1

    # Rules

    def run(self) -> None:
        """Read from the start. The calls are on a list: those of 250 levels would be too many for Python's own stack."""
        calls, failure = [self._rule(Rule("start"), -1)], None
        while calls:
            try:
                if failure is None:
                    calls.append(next(calls[-1]))
                else:
                    thrown, failure = failure, None
                    calls.append(calls[-1].throw(thrown))
            except StopIteration:
                calls.pop()
            except _FailureError as error:
                calls.pop()
                failure = error

    def _rule(self, rule: Rule, after: int) -> _Call:
        self.frames.append(_Frame(rule, after))
        self._open[rule.name] += 1
        if self._open[rule.name] > DEEPEST:
            raise _StopError(f"expression recursion limit exceeded: {DEEPEST}")
        try:
            yield self._step(self._graph.steps[rule.name])
        except _FailureError as failure:
            self._report(failure.message, failure.token)
            self._recover()
        self.frames.pop()
        self._open[rule.name] -= 1

    def _step(self, step: Step) -> _Call:
        self.state = step.state
        match step.part:
            case Take(kinds):
                if self._kind() in kinds:
                    self._matched()
                    self._consume()
                else:
                    self._recover_inline()
            case Rule() as rule:
                yield self._rule(rule, self._graph.edges[step.state][0].target)
            case Level(precedence):
                assert precedence >= self.frames[-1].rule.precedence
            case Choice(by_kind=by_kind):
                self._sync(is_loop=False)
                yield self._step(step.steps[self._choose(step, by_kind=by_kind)])
            case Maybe():
                self._sync(is_loop=False)
                if self._kind() in self._graph.next_kinds(step.steps[0].state):
                    yield self._step(step.steps[0])
            case Many() as many:
                yield self._many(step, many)
            case _:
                for each in step.steps:
                    yield self._step(each)

    def _many(self, step: Step, many: Many) -> _Call:
        self._sync(is_loop=False)
        goes_on = True if many.least else self._goes_on(step, step.state, many)
        while goes_on:
            yield self._step(step.steps[0])
            self.state = step.again
            self._sync(is_loop=True)
            goes_on = self._goes_on(step, step.again, many)

    def _goes_on(self, step: Step, state: int, many: Many) -> bool:
        if many.by_kind:
            return self._kind() in self._graph.next_kinds(step.steps[0].state)
        return self._predict([edge.target for edge in self._graph.edges[state]], has_levels=many.has_levels) == 0

    def _choose(self, step: Step, *, by_kind: bool) -> int:
        if not by_kind:
            return self._predict([each.state for each in step.steps])
        for index, each in enumerate(step.steps):
            if self._kind() in self._graph.next_kinds(each.state):
                return index
        raise self._no_alternative(0)

    def _predict(self, targets: Sequence[int], *, has_levels: bool = False) -> int:
        stack: Stack = None
        for frame in self.frames[1:]:
            stack = (frame.after, stack)
        prediction = _Prediction(self._graph, self._kind, self.frames[-1].rule.precedence, has_levels=has_levels)
        choice, ahead = prediction.choose(targets, stack)
        if choice < 0:
            raise self._no_alternative(ahead)
        return choice

    # Errors

    def _no_alternative(self, ahead: int) -> _FailureError:
        first, last = self._visible[self.at], self._visible[self.at + ahead]
        parts = [token.text for token in self.tokens[first : last + 1] if token.kind != END]
        text = END if self._kind() == END else "".join(parts)
        if text[1:] in {"true", "false", "null"}:  # cel-go's own words, whatever the first character is
            return _FailureError(f"mismatched input '{text[1:]}' expecting {NAME}", self.tokens[last])
        return _FailureError(f"no viable alternative at input {_quoted(text)}", self.tokens[last])

    def _mismatch(self) -> _FailureError:
        token = self._token()
        return _FailureError(f"mismatched input {_quoted(token.text)} expecting {_listed(self._expected())}", token)

    def _report(self, message: str, token: Token) -> None:
        if self.is_recovering:
            return
        self.is_recovering = True
        self.note(message, token.at)

    def note(self, message: str, at: int) -> None:
        if len(self.issues) >= _MOST_ERRORS:
            self.issues.append(self.source.place(at, f"Syntax error: More than {_MOST_ERRORS} syntax errors"))
            raise _StopError
        self.issues.append(self.source.place(at, f"Syntax error: {message}"))

    def _matched(self) -> None:
        self.is_recovering = False
        self.last_error = -1
        self.last_states.clear()

    def _expected(self) -> frozenset[str]:
        """Return what may come next, in this rule and in those that it would come back to."""
        kinds = self._graph.next_kinds(self.state)
        found = set(kinds)
        for frame in reversed(self.frames[1:]):
            if BACK not in kinds:
                break
            kinds = self._graph.next_kinds(frame.after)
            found |= kinds
        if BACK in kinds:
            found.add(END)
        return frozenset(found - {BACK})

    def _recovery_set(self) -> frozenset[str]:
        found: set[str] = set()
        for frame in self.frames[1:]:
            found |= self._graph.next_kinds(frame.after)
        return frozenset(found - {BACK})

    def _sync(self, *, is_loop: bool) -> None:
        if self.is_recovering:
            return
        kinds = self._graph.next_kinds(self.state)
        if BACK in kinds or self._kind() in kinds:
            return
        if not is_loop:
            if not self._delete_one():
                raise self._mismatch()
            return
        self._report_unwanted()
        self._skip_until(self._expected() | self._recovery_set(), limit=None)

    def _report_unwanted(self) -> None:
        token = self._token()
        self._report(f"extraneous input {_quoted(token.text)} expecting {_listed(self._expected())}", token)

    def _delete_one(self) -> bool:
        """Leave out a token if the next one is expected here."""
        if self._kind(1) not in self._expected():
            return False
        self._report_unwanted()
        self._consume()
        self._matched()
        return True

    def _recover_inline(self) -> None:
        self._count_recovery()
        if self._delete_one():
            self._consume()
            return
        after = self._graph.edges[self.state][0].target
        if self._kind() in self._kinds_with_context(after):
            token = self._token()
            self._report(f"missing {_listed(self._expected())} at {_quoted(token.text)}", token)
            return
        raise self._mismatch()

    def _kinds_with_context(self, state: int) -> frozenset[str]:
        kinds = self._graph.next_kinds(state)
        found = set(kinds)
        for frame in reversed(self.frames[1:]):
            if BACK not in kinds:
                break
            kinds = self._graph.next_kinds(frame.after)
            found |= kinds
        return frozenset(found | ({END} if BACK in kinds else set()))

    def _recover(self) -> None:
        self._count_recovery()
        skipped = 0
        if self.last_error == self.at and self.state in self.last_states:
            self._consume()
            skipped = 1
        self.last_error = self.at
        self.last_states.add(self.state)
        self._skip_until(self._recovery_set(), limit=_MOST_SKIPPED - skipped)

    def _skip_until(self, kinds: frozenset[str], *, limit: int | None) -> None:
        skipped = 0
        while self._kind() != END and self._kind() not in kinds:
            if limit is not None and skipped >= limit:
                raise _StopError(f"error recovery token lookahead limit exceeded: {_MOST_SKIPPED}")
            self._consume()
            skipped += 1

    def _count_recovery(self) -> None:
        self.recoveries += 1
        if self.recoveries > _MOST_RECOVERIES:
            self.note(f"error recovery attempt limit exceeded: {_MOST_RECOVERIES}", self._token().at)
            raise _StopError


def _quoted(text: str) -> str:
    shown = text.replace("\t", "\\t").replace("\n", "\\n").replace("\r", "\\r")
    return f"'{shown}'"


def _listed(kinds: Iterable[str]) -> str:
    names = [f"'{kind}'" if kind in SYMBOLS else kind for kind in sorted(kinds, key=KINDS.index)]
    return names[0] if len(names) == 1 else f"{{{', '.join(names)}}}"


def find_syntax_errors(source: Source, tokens: list[Token], bad: Iterable[BadText]) -> list[Issue]:
    """Return what is wrong, as far as cel-go looks."""
    parser = _Parser(source, tokens, deque(bad))
    try:
        parser.run()
    except _StopError as stop:
        if str(stop):
            parser.issues.append(Issue.without_place(str(stop)))
    return parser.issues


__all__ = ["find_syntax_errors"]

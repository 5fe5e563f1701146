# SPDX-License-Identifier: Apache-2.0
"""The mutations of a C source: what a one-line mistake could make of it.

Works on tokens, not on a syntax tree: the tree is formatted by clang-format and every body has braces, so statements
and operands are found by counting brackets.  Only function bodies are mutated; logging, assertions and the release
of memory are not.
"""
import dataclasses
import hashlib
import re

# How often a kind is drawn, against the others: decisions first.
WEIGHTS = {"clause": 3.0, "negate": 2.5, "bound": 2.5, "return": 2.5, "logic": 2.0, "not": 2.0, "equal": 1.5, "drop": 1.5,
           "constant": 1.0}

TOKEN = re.compile(r"""
    (?P<comment>/\*.*?\*/|//[^\n]*)
  | (?P<directive>^[ \t]*\#(?:[^\n\\]|\\.|\\\n)*)
  | (?P<string>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')
  | (?P<number>0[xX][0-9a-fA-F]+[uUlL]*|\d+\.\d+|\d+[uUlL]*)
  | (?P<name>[A-Za-z_]\w*)
  | (?P<punct>->|\+\+|--|<<=|>>=|<=|>=|==|!=|&&|\|\||<<|>>|[-+*/%&|^]=|\.\.\.|[^\s])
""", re.S | re.M | re.X)

OPEN, CLOSE = {"(": ")", "[": "]", "{": "}"}, {")": "(", "]": "[", "}": "{"}
CONTROL = {"if", "for", "while", "switch", "else", "do"}
TYPE_WORDS = {"struct", "const", "static", "enum", "union", "unsigned", "signed", "char", "bool", "int", "long", "short",
              "size_t", "ssize_t", "float", "double", "typedef", "extern", "void"}
ASSIGN = {"=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>="}
# An operand of && or || ends at these; so does the condition of ?: to the left.
LOOSER = {"?", ":", ",", ";", "return"} | ASSIGN
SILENT = re.compile(r"log_\w+|assert\w*|static_assert|_Static_assert|__builtin_unreachable|va_(start|end)")
RELEASE = re.compile(r"(\w*_)?(free|unref|done|release|put|destroy|close|deinit|closep|freep)$")
ALLOCATION = re.compile(r"x?(malloc|calloc|realloc|reallocarray)$")  # A byte more of it is no mistake.
ERROR_CALL = re.compile(r"err_(set|sys|prefix|wrap)$")
BOUNDS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}
EQUALS = {"==": "!=", "!=": "=="}
LOGIC = {"&&": "||", "||": "&&"}


@dataclasses.dataclass(frozen=True)
class Token:
    kind: str
    text: str
    start: int
    line: int

    @property
    def end(self):
        return self.start + len(self.text)


@dataclasses.dataclass(frozen=True)
class Mutation:
    """One change of one place.  'id' depends on the line's text, not on its number, so it outlives moves of the line."""
    id: str
    file: str
    line: int
    text: str  # The line, without the blanks around it.
    kind: str
    what: str  # For people: what becomes what.
    start: int
    end: int
    new: str
    function: str

    def apply(self, source):
        lines = source.count("\n", self.start, self.end) - self.new.count("\n")  # All others keep their numbers.
        return source[:self.start] + self.new + "\n" * lines + source[self.end:]

    def rank(self, seed):
        """The mutation's place in the lottery: the greater is drawn first.  A mutation keeps its place when others come and go."""
        n = int.from_bytes(hashlib.sha256(f"{seed}/{self.id}".encode()).digest()[:8], "big")
        return ((n + 1) / 2.0**64) ** (1 / WEIGHTS[self.kind])


def tokenize(source):
    tokens, line, seen = [], 1, 0
    for m in TOKEN.finditer(source):
        line += source.count("\n", seen, m.start())
        seen = m.start()
        if m.lastgroup not in ("comment", "directive"):
            tokens.append(Token(m.lastgroup, m.group(), m.start(), line))
    return tokens


def brackets(tokens):
    """The partner of each bracket, both ways."""
    partner, stack = {}, []
    for i, t in enumerate(tokens):
        if t.kind == "punct" and t.text in OPEN:
            stack.append(i)
        elif t.kind == "punct" and t.text in CLOSE and stack:
            partner[i] = stack.pop()
            partner[partner[i]] = i
    return partner


@dataclasses.dataclass
class Function:
    name: str
    result: list  # The words of the type that it returns.
    first: int  # The first token after its opening brace ...
    last: int  # ... and its closing brace.

    @property
    def is_bool(self):
        return "bool" in self.result and "*" not in self.result

    @property
    def is_int(self):
        return "int" in self.result and "*" not in self.result

    @property
    def is_pointer(self):
        return "*" in self.result


def functions(tokens, partner):
    i = 0
    while i < len(tokens):
        if tokens[i].text == "{" and i in partner:
            if i and tokens[i - 1].text == ")":
                head = partner[i - 1]
                start = head - 1
                while start > 0 and tokens[start - 1].text not in {";", "}"}:
                    start -= 1
                words = [t.text for t in tokens[start:head - 1]]
                yield Function(tokens[head - 1].text, words, i + 1, partner[i])
            i = partner[i]
        i += 1


@dataclasses.dataclass
class Statement:
    first: int
    last: int  # The last token: its ';', or for a head ("if (...)") its ')'.
    head: bool


def statements(tokens, partner, first, last):
    """The statements of tokens[first:last], and the heads of those that have a block."""
    i = start = first
    while i < last:
        t = tokens[i].text
        if i == start and t in {"{", "}", ";"}:
            i = start = i + 1
        elif i == start and t in {"case", "default"} or (i == start and tokens[i + 1].text == ":" and tokens[i].kind == "name"):
            while tokens[i].text != ":":
                i += 1
            i = start = i + 1
        elif t in {"(", "["}:
            i = partner[i] + 1
        elif t == "{":
            word = tokens[start].text
            if word in CONTROL or (word.isupper() and tokens[start + 1].text == "("):
                yield Statement(start, i - 1, True)
                i = start = i + 1
            else:  # An initializer.
                i = partner[i] + 1
        elif t == ";":
            yield Statement(start, i, False)
            i = start = i + 1
        else:
            i += 1


def is_declaration(tokens, s):
    if tokens[s.first].text in TYPE_WORDS or tokens[s.first].text.startswith("CLEANUP"):
        return True
    if tokens[s.first].kind != "name" or tokens[s.first].text in {"return", "goto", "break", "continue"}:
        return False
    after = tokens[s.first + 1]
    return after.kind == "name" or (after.text == "*" and tokens[s.first + 2].kind == "name")


class Finder:
    """Collects the mutations of one file."""

    def __init__(self, file, source):
        self.file, self.source = file, source
        self.lines = [x.strip() for x in source.split("\n")]
        self.tokens = tokenize(source)
        self.partner = brackets(self.tokens)
        self.found, self.function = [], None

    def run(self):
        for self.function in functions(self.tokens, self.partner):
            for s in statements(self.tokens, self.partner, self.function.first, self.function.last):
                self.statement(s)
        return self.named()

    def named(self):
        """The mutations with their identities: file, line's text, which of the lines with that text, which change of it."""
        counts, result = {}, []
        for line, kind, what, start, end, new, function in sorted(self.found, key=lambda f: (f[3], f[1], f[4], f[5])):
            text = self.lines[line - 1]
            nth = self.lines[:line - 1].count(text)
            key = (self.file, text, nth, kind, what)
            counts[key] = counts.get(key, 0) + 1
            digest = hashlib.sha1(repr((key, counts[key])).encode()).hexdigest()[:10]
            result.append(Mutation(digest, self.file, line, text, kind, what, start, end, new, function))
        return result

    def add(self, kind, what, start, end, new):
        line = self.source.count("\n", 0, start) + 1
        self.found.append((line, kind, " ".join(what.split()), start, end, new, self.function.name))

    def span(self, first, last):
        """The source from the token 'first' to the token 'last'."""
        return self.source[self.tokens[first].start:self.tokens[last].end]

    # ---- statements ----

    def statement(self, s):
        t = self.tokens
        word = t[s.first].text
        if SILENT.fullmatch(word) or word in {"static", "typedef", "goto"}:
            return
        if s.head:
            self.head(s)
        elif word == "return":
            self.returned(s)
        elif is_declaration(t, s):
            at = next((i for i in range(s.first, s.last) if t[i].text == "="), None)
            if at is not None and t[at + 1].text != "{":
                self.expression(at + 1, s.last)
        else:
            self.dropped(s)
            self.expression(s.first, s.last)

    def head(self, s):
        t = self.tokens
        at = s.first + (t[s.first].text == "else" and s.last > s.first)
        if t[at].text in {"if", "while"}:
            begin, end = at + 1, self.partner[at + 1]
            self.add("negate", f"!({self.span(begin + 1, end - 1)})", t[begin].end, t[end].start,
                     f"!({self.span(begin + 1, end - 1)})")
            self.expression(begin + 1, end)
        elif t[at].text in {"for", "switch"}:
            self.expression(at + 2, self.partner[at + 1])

    def dropped(self, s):
        t = self.tokens
        at = s.first + (3 if self.span(s.first, s.first + 1).startswith("(void") else 0)
        call = t[at].kind == "name" and t[at + 1].text == "("
        if (call and RELEASE.match(t[at].text)) or re.search(r"=\s*\w*free\(", self.span(s.first, s.last)):
            return
        self.add("drop", f"{self.span(s.first, s.last)} dropped", t[s.first].start, t[s.last].end, ";")

    def returned(self, s):
        t, f = self.tokens, self.function
        if s.last == s.first + 1:
            self.add("drop", "return; dropped", t[s.first].start, t[s.last].end, ";")
            return
        text = self.span(s.first + 1, s.last - 1)
        instead = []
        if f.is_bool:
            instead = [x for x in ("true", "false") if x != text]
        elif f.is_int:
            instead = ["-EIO"] if text == "0" else [] if t[s.first + 1].kind == "number" else ["0"]
        elif f.is_pointer and text != "NULL":
            instead = ["NULL"]
        for x in instead:
            self.add("return", f"return {x}", t[s.first + 1].start, t[s.last].start, x)
        if not (ERROR_CALL.match(t[s.first + 1].text) or f.is_bool and text in {"true", "false"} or text.startswith("-E")):
            self.expression(s.first + 1, s.last)

    # ---- expressions: tokens[first:last] ----

    def expression(self, first, last):
        t = self.tokens
        i = first
        while i < last:
            text = t[i].text
            silent = SILENT.fullmatch(text) or ERROR_CALL.match(text) or ALLOCATION.match(text)
            if t[i].kind == "name" and silent and t[i + 1].text == "(":
                i = self.partner[i + 1] + 1
                continue
            if t[i].kind == "punct":
                self.operator(i, first, last)
            elif t[i].kind == "number":
                self.number(i)
            i += 1

    def operator(self, i, first, last):
        t, text = self.tokens, self.tokens[i].text
        for kind, table in (("bound", BOUNDS), ("equal", EQUALS), ("logic", LOGIC)):
            if text in table:
                self.add(kind, f"{self.near(i)}: {text} to {table[text]}", t[i].start, t[i].end, table[text])
        if text in LOGIC:
            self.clause(i, first, last)
        elif text == "!":
            self.add("not", f"{self.span(i, self.operand_end(i + 1))} without !", t[i].start, t[i].end, "")
        elif text == "?":
            begin = self.left(i, first, LOOSER)
            cond = self.span(begin, i - 1)
            self.add("negate", f"!({cond}) ?", t[begin].start, t[i - 1].end, f"!({cond})")

    def clause(self, i, first, last):
        """The operand to the right of the operator goes; that to the left too, when it is the first."""
        t, text = self.tokens, self.tokens[i].text
        end = self.right(i, last, LOOSER | ({"&&", "||"} if text == "&&" else {"||"}))
        self.add("clause", f"without {self.span(i, end)}", t[i].start, t[end].end, "")
        begin = self.left(i, first, LOOSER | {"||"} | ({"&&"} if text == "&&" else set()))
        if begin == first or t[begin - 1].text != text:
            self.add("clause", f"without {self.span(begin, i)}", t[begin].start, t[i].end, "")

    def number(self, i):
        t = self.tokens
        before, after = t[i - 1].text, t[i + 1].text
        if before == "{" and after == "}" or "." in t[i].text:
            return
        self.add("constant", f"{self.near(i)}: {t[i].text} to {t[i].text} + 1", t[i].start, t[i].end, f"({t[i].text} + 1)")

    def near(self, i):
        """Some tokens around: which of a line's operators is meant."""
        first = last = i
        while first > i - 2 and self.tokens[first - 1].text not in {";", "{", "}"}:
            first -= 1
        while last < i + 2 and self.tokens[last + 1].text not in {";", "{", "}"}:
            last += 1
        return self.span(first, last)

    def operand_end(self, i):
        """The last token of the unary expression that begins at 'i'."""
        t = self.tokens
        while t[i].text in {"!", "*", "&", "-", "~"}:
            i += 1
        if t[i].text in OPEN:
            i = self.partner[i]
        while t[i + 1].text in {"(", "[", ".", "->"}:
            i = self.partner[i + 1] if t[i + 1].text in OPEN else i + 2
        return i

    def left(self, i, first, stops):
        while i > first and self.tokens[i - 1].text not in stops and self.tokens[i - 1].text not in OPEN:
            i -= 1
            if self.tokens[i].text in CLOSE:
                i = self.partner[i]
        return i

    def right(self, i, last, stops):
        while i + 1 < last and self.tokens[i + 1].text not in stops and self.tokens[i + 1].text not in CLOSE:
            i += 1
            if self.tokens[i].text in OPEN:
                i = self.partner[i]
        return i


def mutations(file, source):
    """All mutations of a file, in the order of its lines."""
    return Finder(file, source).run()


def draw(candidates, seed):
    """The candidates in the order of the lottery, at most one of a line."""
    taken = set()
    for m in sorted(candidates, key=lambda m: m.rank(seed), reverse=True):
        if (m.file, m.line) not in taken:
            taken.add((m.file, m.line))
            yield m

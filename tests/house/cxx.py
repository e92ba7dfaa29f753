"""A lexer for C++ that finds functions, their lengths, and casts. It resolves neither types nor macros."""
import re
from typing import NamedTuple

TOKEN = re.compile(r"""
    (?P<comment>//(?:\\\n|[^\n])*|/\*.*?\*/)
  | (?P<directive>(?:^|(?<=\n))[ \t]*\#[ \t]*\w*)
  | (?P<raw>(?:u8|[uUL])?R"(?P<delimiter>[^()\\\s]{0,16})\(.*?\)(?P=delimiter)")
  | (?P<string>(?:u8|[uUL])?"(?:\\.|[^"\\\n])*")
  | (?P<character>(?:u8|[uUL])?'(?:\\.|[^'\\\n])+')
  | (?P<number>\.?[0-9](?:'?[0-9a-zA-Z_.]|(?<=[eEpP])[+-])*)
  | (?P<name>[A-Za-z_]\w*)
  | (?P<end>(?<!\\)\n)
  | (?P<space>\s+|\\\n)
  | (?P<sign>::|->|&&|\|\||==|!=|<=|>=|\+=|-=|\*=|/=|%=|&=|\|=|\^=|.)
""", re.VERBOSE | re.DOTALL)

SCALARS = set("""bool char short int long float double signed unsigned size_t ptrdiff_t ssize_t Py_ssize_t intptr_t uintptr_t
    char8_t wchar_t int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t""".split())
CLOSING = {"(": ")", "[": "]", "{": "}"}
AFTER_PARAMETERS = {")", "const", "noexcept", "override", "final", "&", "&&", "try", "mutable"}
NOT_A_FUNCTION_NAME = {"__launch_bounds__", "alignas", "noexcept", "__attribute__", "requires", "explicit", "decltype"}


class Token(NamedTuple):
    kind: str
    text: str
    begin: int
    line: int
    directive: str  # the name of the directive that the token belongs to, or ""

    @property
    def end(self):
        return self.begin + len(self.text)


class Function(NamedTuple):
    name: str
    line: int
    lines: int


class Cast(NamedTuple):
    begin: int  # offsets in the text: of the type, of the operand's opening bracket, and after its closing one
    bracket: int
    end: int
    line: int
    type: str
    text: str


def tokens(text):
    """The tokens of a source file, without comments and space."""
    found, line, directive = [], 1, ""
    for match in TOKEN.finditer(text):
        kind, part = match.lastgroup, match.group()
        if kind == "delimiter":
            kind = "raw"
        if kind == "directive":
            directive = part.strip().lstrip("#").strip() or "#"
        if kind not in ("comment", "space", "end"):
            found.append(Token(kind, part, match.start(), line, directive))
        if kind == "end":
            directive = ""
        line += part.count("\n")
    return found


def one_branch(all_tokens):
    """The tokens outside directives. Where the first branch of an #if leaves braces open, the other branches are dropped."""
    kept, depth, conditions, skipping = [], 0, [], 0
    for token in all_tokens:
        if token.kind == "directive":
            name = token.directive
            if name in ("if", "ifdef", "ifndef"):
                conditions.append(depth)
                skipping += bool(skipping)
            elif name in ("else", "elif") and conditions and not skipping and depth != conditions[-1]:
                skipping = 1
            elif name == "endif" and conditions:
                conditions.pop()
                skipping -= bool(skipping)
        elif not token.directive and not skipping:
            depth += (token.text == "{") - (token.text == "}")
            kept.append(token)
    return kept


def closing(source, opening):
    """The index of the bracket that closes the bracket at `opening`, or the index of the last token."""
    depth = 0
    for index in range(opening, len(source)):
        text = source[index].text
        depth += (text in CLOSING) - (text in CLOSING.values())
        if depth == 0:
            return index
    return len(source) - 1


def closing_angle(source, opening):
    """The index of the > that closes the < of a template's parameters."""
    depth, index = 0, opening
    while index < len(source):
        text = source[index].text
        if text in CLOSING:
            index = closing(source, index)
        depth += (text == "<") - (text == ">")
        if depth == 0:
            return index
        index += 1
    return len(source) - 1


class Functions:
    """Walks over declarations: into namespaces and classes, and past bodies of functions and initialisers."""

    def __init__(self, source):
        self.source, self.found = source, []
        self.head = []  # indices of the declaration's tokens so far, without those inside brackets
        index = 0
        while index < len(source):
            index = self.step(index)

    def text(self, index):
        return self.source[index].text

    def words(self):
        return [self.text(index) for index in self.head]

    def reset(self, index):
        self.head = []
        return index

    def step(self, index):
        text = self.text(index)
        before = self.text(self.head[-1]) if self.head else ""
        if text in ";}" or text == ":" and before in ("public", "private", "protected"):
            return self.reset(index + 1)
        if text == "{":
            return self.brace(index)
        if text == "=" and before != "operator":
            return self.initialiser(index)
        self.head.append(index)
        if text == "<" and before == "template":
            index = closing_angle(self.source, index)
        elif text in ("(", "["):
            index = closing(self.source, index)
            self.head.append(index)
        return index + 1

    def initialiser(self, index):
        end = index
        while end < len(self.source) and self.text(end) not in ";}":
            end = closing(self.source, end) + 1
        self.lambdas(index, end)
        return end

    def brace(self, index):
        words, end = self.words(), closing(self.source, index)
        before = words[-1] if words else ""
        if "namespace" in words or "extern" in words and self.source[self.head[-1]].kind == "string":
            return self.reset(index + 1)
        if before not in AFTER_PARAMETERS and {"class", "struct", "union"} & set(words) and "enum" not in words:
            return self.reset(index + 1)
        if self.is_requirement(words):
            self.head.append(end)
            return end + 1
        if self.is_body(words, before):
            while end + 3 < len(self.source) and self.text(end + 1) == "catch":
                end = closing(self.source, closing(self.source, end + 2) + 1)
            self.add(self.head, end)
            return self.reset(end + 1)
        self.lambdas(index, end)
        self.head.append(end)
        return end + 1

    @staticmethod
    def is_requirement(words):
        """Returns whether a brace after these words opens a requires-expression: requires { or && requires (T x) {."""
        if words[-1:] == ["requires"]:
            return True
        return words[-3:] == ["requires", "(", ")"] and words[-4:-3] and words[-4] in ("requires", "&&", "||", "=")

    @staticmethod
    def is_body(words, before):
        if "enum" in words or ")" not in words:
            return False
        parameters = words.index(")")
        if ":" in words[parameters:]:  # a constructor with initialisers: a{1}, b(2) {
            return before in (")", "}")
        return before in AFTER_PARAMETERS or "->" in words[parameters:] or "requires" in words[parameters:]

    def add(self, head, end):
        words = [self.text(index) for index in head]
        after_macro = words[3:] if words[0].isupper() and words[1] == "(" else []
        if after_macro and self.source[head[3]].kind == "name" and after_macro[0] not in AFTER_PARAMETERS:
            head, words = head[3:], after_macro  # the macro needs no semicolon
        names = [word for word, following in zip(words, words[1:]) if following == "(" and word not in NOT_A_FUNCTION_NAME]
        first = self.source[head[0]].line
        name = "operator" if "operator" in words else (names or ["unnamed"])[0]
        self.found.append(Function(name, first, self.source[end].line - first + 1))

    def lambdas(self, begin, end):
        """Records the lambdas of an initialiser outside functions: each lambda is a function."""
        index = begin
        while index < end:
            before = self.source[index - 1]
            if self.text(index) == "[" and before.kind != "name" and before.text not in (")", "]") or \
                    self.text(index) == "[" and before.text == "return":
                opening = closing(self.source, index) + 1
                while opening < end and self.text(opening) not in "{;,":
                    opening = closing(self.source, opening) + 1 if self.text(opening) == "(" else opening + 1
                if opening < end and self.text(opening) == "{":
                    close = closing(self.source, opening)
                    line = self.source[index].line
                    self.found.append(Function("lambda", line, self.source[close].line - line + 1))
                    index = close
            index += 1


def functions(text):
    """The functions that a source file defines: name, first line, number of lines from the declaration to the last brace."""
    return Functions(one_branch(tokens(text))).found


def enumerations(text):
    """The names of the enumerations that a source file defines."""
    return set(re.findall(r"\benum(?:\s+(?:class|struct))?\s+([A-Za-z_]\w*)\s*(?::[^;{]*)?\{", text))


def classes(text):
    """The names of the classes that a source file defines."""
    return set(re.findall(r"(?<!enum )\b(?:class|struct)\s+(?:[A-Z_]+\s+)?(\w+)[^;{}()<>]*\{", text))


def aliases(text):
    """The names that a source file gives to scalar types."""
    scalar = r"(?:std::)?(?:" + "|".join(sorted(SCALARS)) + r")"
    return set(re.findall(rf"\busing\s+(\w+)\s*=\s*{scalar}\s*;", text)) | \
        set(re.findall(rf"\btypedef\s+{scalar}\s+(\w+)\s*;", text))


def template_parameters(source):
    """The names of the type parameters of the templates in a file."""
    names = set()
    for index, token in enumerate(source[:-1]):
        if token.text == "template" and source[index + 1].text == "<":
            end = closing_angle(source, index + 1)
            for place in range(index, end):
                if source[place].text in ("class", "typename") and source[place + 1].kind == "name":
                    names.add(source[place + 1].text)
    return names


def is_literal(operand):
    """Returns whether the operand is a number, a character, true or false, with or without a sign."""
    texts = [token.text for token in operand]
    if texts and texts[0] in ("-", "+"):
        operand = operand[1:]
    return len(operand) == 1 and (operand[0].kind in ("number", "character") or operand[0].text in ("true", "false"))


def is_type_list(operand):
    """Returns whether the brackets hold only types, as in the function type int(double, const T&)."""
    texts = [token.text for token in operand]
    if texts[0] == "*" and len(texts) <= 2:
        return len(texts) == 1
    named = any(text in SCALARS or text in ("const", "void", "auto", "...") or text.startswith("plugrad_") for text in texts)
    return named and all(token.kind ==
                         "name" or token.text in (",", "*", "&", "::", "<", ">", "&&", ".") for token in operand)


def is_declarator(source, opening, end):
    """Returns whether the brackets hold a declarator: (*name)(...), (&name)[...], (Class::*name)(...)."""
    inner = [token.text for token in source[opening + 1:end]]
    follows = source[min(end + 1, len(source) - 1)].text in ("(", "[")
    return follows and ("".join(inner[:1]) in ("*", "&") and len(inner) <= 2 or "::*" in "".join(inner))


def has_comma(operand):
    """Returns whether there are several operands. A comma between template arguments does not separate operands."""
    index = 0
    while index < len(operand):
        text = operand[index].text
        if text == ",":
            return True
        if text in CLOSING:
            index = closing(operand, index)
        elif text == "<" and index and operand[index - 1].kind == "name":
            end = closing_angle(operand, index)
            inner = operand[index + 1:end]
            index = end if all(each.kind in ("name", "number") or each.text in ("::", ",", "*", "<",
                                                                                ">") for each in inner) else index
        index += 1
    return False


def is_placement_new(source, first):
    """Returns whether new (place) stands before the type at `first`."""
    if source[first - 1].text != ")":
        return False
    depth, index = 1, first - 1
    while depth and index:
        index -= 1
        depth += (source[index].text == ")") - (source[index].text == "(")
    return source[index - 1].text == "new"


def functional_cast(source, index, types):
    """The cast T(x) whose type is the token at `index`, or None. T(1) gives a literal its width and does not count."""
    token = source[index]
    if token.text not in types or index + 2 >= len(source) or source[index + 1].text != "(":
        return None
    first = index
    while first >= 2 and source[first - 1].text == "::" and source[first - 2].kind == "name":
        first -= 2
    before = source[first - 1].text if first else ""
    end = closing(source, index + 1)
    operand = source[index + 2:end]
    if before in (".", "->", "new", "operator", "class", "struct", "enum", "explicit", "~", "::", "typename", "define"):
        return None
    if first and source[first - 1].kind == "name" and before not in ("return", "else", "case", "throw", "co_return", "do",
                                                                     "in"):
        return None  # a declaration: `static double(x)` does not occur
    if first and is_placement_new(source, first):
        return None
    if not operand or is_literal(operand) or has_comma(operand) or is_declarator(source, index + 1, end):
        return None
    if token.text in SCALARS and is_type_list(operand):
        return None
    return first, index + 1, end


def c_cast(source, index):
    """The cast (T)x whose bracket is the token at `index`, or None."""
    inner = index + 1
    while inner < len(source) - 1 and (source[inner].text in SCALARS or source[inner].text in ("std", "::", "const")):
        inner += 1
    if inner == index + 1 or source[inner].text != ")" or inner + 1 >= len(source):
        return None
    before, after = source[index - 1], source[inner + 1]
    if before.kind == "name" and before.text not in ("return", "else", "case") or before.text in (")", "]", ">"):
        return None
    return inner if after.kind in ("name", "number", "character") or after.text in ("(", "-", "*", "~") else None


def casts(text, names=()):
    """The casts between scalar types that are not static_cast, in the order of the file."""
    source = tokens(text)
    types = SCALARS | set(names) | aliases(text) | template_parameters(source)
    found = []
    for index, token in enumerate(source):
        place = functional_cast(source, index, types)
        if place:
            first, opening, end = place
            begin = source[first].begin
            found.append(Cast(begin, source[opening].begin, source[end].end, token.line, text[begin:token.end],
                              text[begin:source[end].end]))
        elif token.text == "(" and c_cast(source, index):
            end = source[c_cast(source, index)].end
            found.append(Cast(token.begin, token.begin, end, token.line, text[token.begin + 1:end - 1],
                              text[token.begin:end]))
    return found

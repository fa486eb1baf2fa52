"""Makes C of the formulas of the models: planner_formulas.c from each NOUN.def.

Usage: formulas.py OUTPUT NOUN.def...

A formula is a Python expression (src/planner/model.h tells of the rows of a .def and of what an
expression may use). Each becomes one assignment in NOUN_plan(); a figure that it needs and that
has no value, or a division by zero, makes its reason. Reasons carry the number of the place that
they come from, so that the first in reading order is told whatever order C evaluates in.

A mistake in a .def ends the build with a line that names it.
"""

import ast
import os
import re
import sys

ROWS = ("MODEL", "HEAD", "INPUT", "WHOLE", "CHOICE", "POINTS", "USED", "OUTPUT", "WORDS", "WHY",
        "VERDICT", "ROWS_BY", "WORDS_BY")
TOKEN = re.compile(r'/\*.*?\*/|"(?:\\.|[^"\\])*"|[(),]|[^\s(),"]+|\s+', re.DOTALL)
FUNCTIONS = {"floor": "floor", "sqrt": "sqrt", "exp": "exp", "expm1": "expm1", "log": "log",
             "log2": "log2", "ceil": "whole_up", "round": "round", "abs": "fabs"}
# C functions that are given the reason to fill, and whose first argument may be points.
OURS = {"erlang_c": 2, "stripe_best_size": 2, "stripe_best_count": 2, "packet_payload": 3,
        "layout_spread": 3, "layout_share_on_fullest": 3, "jobs_p99": 3, "jobs_count": 1,
        "jobs_size": 1, "jobs_mean": 1}
FITS = ("least_squares_amdahl", "least_squares_usl")
LEVELS = ("never", "unpaid", "missed", "loses", "short", "tight", "ok")
WIDTH = 100


class Wrong(Exception):
    pass


def rows_of(path):
    """(macro, [argument]) of each row; an argument is a string's text or a bare word."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    rows, current, depth, argument = [], None, 0, []
    word = None
    for match in TOKEN.finditer(text):
        token = match.group(0)
        if token.startswith("/*") or token.isspace():
            continue
        if depth == 0:
            if token == "(" and word in ROWS:
                current, depth, argument = (word, []), 1, []
            word = token
        elif depth == 1 and token in ",)":
            current[1].append(joined(argument))
            argument = []
            if token == ")":
                rows.append(current)
                depth = 0
        else:
            depth += (token == "(") - (token == ")")
            argument.append(token)
    return rows


def joined(tokens):
    if tokens and tokens[0].startswith('"'):
        return "".join(ast.literal_eval(token) for token in tokens)
    return "".join(tokens)


def quoted(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


class Model:
    def __init__(self, path):
        self.noun = os.path.splitext(os.path.basename(path))[0]
        self.inputs, self.outputs, self.verdicts = {}, {}, []
        self.used, self.why = {}, {}
        self.about, self.head, self.rows_by, self.words_by = None, [], None, None
        for macro, fields in rows_of(path):
            self.take(macro, fields)
        if not self.about:
            raise Wrong(f"{self.noun}: no MODEL row")
        for name in self.head:
            if name not in self.outputs:
                raise Wrong(f"{self.noun}: HEAD names {name}, which is no output")

    def take(self, macro, fields):
        if macro == "MODEL":
            self.about = fields
        elif macro == "HEAD":
            self.head = fields[0].split()
        elif macro in ("INPUT", "WHOLE", "CHOICE", "POINTS"):
            self.inputs[fields[0]] = (macro, fields)
        elif macro == "USED":
            for name in fields[0].split():
                if name not in self.inputs:
                    raise Wrong(f"{self.noun}: USED names {name}, which is no input")
                self.used[name] = fields[1]
        elif macro in ("OUTPUT", "WORDS"):
            self.outputs[fields[0]] = (macro, fields)
        elif macro == "WHY":
            self.why[normal(fields[0])] = fields[1]
        elif macro == "VERDICT":
            if fields[0] not in LEVELS:
                raise Wrong(f"{self.noun}: no level {fields[0]}")
            self.verdicts.append(fields)
        elif macro == "ROWS_BY":
            self.rows_by = fields[0]
        else:
            self.words_by = fields[0]

    def choices(self, name):
        macro, fields = self.inputs[name]
        return fields[1].split("|") if macro == "CHOICE" else None

    def enumerator(self, name, value):
        if value not in self.choices(name):
            raise Wrong(f"{self.noun}: {name} has no choice {value!r}")
        return re.sub(r"\W", "_", f"{self.noun}_{name}_{value}").upper()

    def unit(self, name):
        if name in self.inputs:
            macro, fields = self.inputs[name]
            return {"INPUT": fields[1], "WHOLE": "COUNT"}.get(macro)
        macro, fields = self.outputs[name]
        return fields[1] if macro == "OUTPUT" else None


def normal(expression):
    """Its text as ast writes it; a bare name stays as it is."""
    return ast.unparse(ast.parse(expression, mode="eval"))


class Expression:
    """One expression of a model on its way to C; counts the places that may give a reason."""

    def __init__(self, model, text, where):
        self.model, self.where, self.places = model, where, 0
        try:
            self.tree = ast.parse(text, mode="eval").body
        except SyntaxError as error:
            raise Wrong(f"{model.noun}.{where}: {error}") from error

    def wrong(self, node, why):
        raise Wrong(f"{self.model.noun}.{self.where}: {why}: {ast.unparse(node)}")

    def place(self):
        self.places += 1
        return self.places

    def name(self, node):
        name = node.id
        if name in self.model.inputs:
            return f"in->{name}"
        if name in self.model.outputs:
            place = self.place()
            return f"need(&why, {place}, &out->{name})"
        return self.wrong(node, "no such name")

    def positive(self, node):
        """Whether it cannot be 0."""
        if isinstance(node, ast.Constant):
            return isinstance(node.value, (int, float)) and node.value > 0
        if isinstance(node, ast.Name) and node.id in self.model.inputs:
            macro, fields = self.model.inputs[node.id]
            least = fields[3] if macro == "INPUT" else fields[2] if macro == "WHOLE" else "0"
            return float(least) > 0
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Mult, ast.Div)):
            return self.positive(node.left) and self.positive(node.right)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
            return self.positive(node.left)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            return self.positive(node.left) and self.positive(node.right)
        return False

    def operation(self, node):
        left = self.number(node.left)
        right = self.number(node.right)
        if isinstance(node.op, ast.Div) and not self.positive(node.right):
            text = ast.unparse(node.right)
            why = self.model.why.get(text, f"{text} is zero")
            return f"ratio(&why, {self.place()}, {left}, {right}, {quoted(why)})"
        if isinstance(node.op, ast.Mod):
            return f"fmod({left}, {right})"
        if isinstance(node.op, ast.Pow):
            if isinstance(node.right, ast.Constant) and node.right.value == 2 and \
                    isinstance(node.left, ast.Name):
                return f"{left} * {left}"
            return f"pow({left}, {right})"
        signs = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}
        if type(node.op) not in signs:
            self.wrong(node, "no such operation")
        return f"{self.grouped(node.left, left, node.op)} {signs[type(node.op)]} " \
               f"{self.grouped(node.right, right, node.op, True)}"

    @staticmethod
    def grouped(node, text, operation, right=False):
        rank = {ast.Add: 1, ast.Sub: 1, ast.Mult: 2, ast.Div: 2}
        if isinstance(node, (ast.IfExp, ast.Compare, ast.UnaryOp)):
            return f"({text})"
        if isinstance(node, ast.BinOp) and type(node.op) in rank:
            inner, outer = rank[type(node.op)], rank[type(operation)]
            if text.startswith("ratio(") and isinstance(node.op, ast.Div):
                return text
            if inner < outer or (right and inner == outer):
                return f"({text})"
        return text

    def call(self, node):
        name = node.func.id
        if name in ("min", "max"):
            parts = [self.number(part) for part in node.args]
            text = parts[-1]
            for part in reversed(parts[:-1]):
                text = f"f{name}({part}, {text})"
            return text
        if name == "cannot":
            return f"cannot(&why, {self.place()}, {quoted(node.args[0].value)})"
        if name == "data":
            why = self.model.why.get(ast.unparse(node))
            why = quoted(why) if why else "NULL"
            parts = ", ".join(self.part(part) for part in self.addends(node.args[0]))
            return f"from_data(&why, {self.place()}, data, {why}, " \
                   f"(const char *const[]){{{parts}, NULL}})"
        if name in OURS:
            if len(node.args) != OURS[name]:
                self.wrong(node, f"{name} takes {OURS[name]}")
            parts = [self.argument(part) for part in node.args]
            return f"{name}(&why, {self.place()}, {', '.join(parts)})"
        if name in FUNCTIONS and len(node.args) == 1:
            return f"{FUNCTIONS[name]}({self.number(node.args[0])})"
        return self.wrong(node, "no such function")

    def argument(self, node):
        if isinstance(node, ast.Name) and node.id in self.model.inputs and \
                self.model.inputs[node.id][0] == "POINTS":
            return f"&in->{node.id}"
        return self.number(node)

    def addends(self, node):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            return self.addends(node.left) + self.addends(node.right)
        return [node]

    def part(self, node):
        """A piece of a text: a constant, the name of a choice, or words."""
        if isinstance(node, ast.Constant):
            return quoted(node.value)
        if isinstance(node, ast.Name):
            if self.model.inputs.get(node.id, ("",))[0] == "CHOICE":
                return f"{self.model.noun}_{node.id}_names[in->{node.id}]"
            if self.model.outputs.get(node.id, ("",))[0] == "WORDS":
                return f"out->{node.id}.text"
        return self.wrong(node, "no piece of a text")

    def subscript(self, node):
        if isinstance(node.value, ast.Dict):
            name = node.slice.id
            wanted = self.model.choices(name) if name in self.model.inputs else None
            keys = [key.value for key in node.value.keys]
            if wanted is None or sorted(keys) != sorted(wanted):
                self.wrong(node, f"the keys are not the choices of {name}")
            values = [self.number(value) for value in node.value.values]
            text = values[-1]
            for key, value in list(zip(keys, values))[-2::-1]:
                text = f"in->{name} == {self.model.enumerator(name, key)} ? {value} : {text}"
            return f"({text})"
        if isinstance(node.value, ast.Call) and node.value.func.id in FITS:
            return f"{node.value.func.id}(&why, {self.place()}, &in->points, {node.slice.value})"
        return self.wrong(node, "no such subscript")

    def number(self, node):
        if isinstance(node, ast.Constant):
            return repr(node.value) if isinstance(node.value, float) else f"{node.value}.0" \
                if isinstance(node.value, int) and not isinstance(node.value, bool) \
                else self.wrong(node, "no number")
        if isinstance(node, ast.Name):
            return self.name(node)
        if isinstance(node, ast.BinOp):
            return self.operation(node)
        if isinstance(node, ast.IfExp):
            return f"({self.condition(node.test)} ? {self.number(node.body)} : " \
                   f"{self.number(node.orelse)})"
        if isinstance(node, ast.Compare):
            return f"({self.condition(node)} ? 1.0 : 0.0)"
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return f"-{self.number(node.operand)}"
        if isinstance(node, ast.Call):
            return self.call(node)
        if isinstance(node, ast.Subscript):
            return self.subscript(node)
        return self.wrong(node, "no number")

    def condition(self, node):
        if isinstance(node, ast.BoolOp):
            sign = " && " if isinstance(node.op, ast.And) else " || "
            return "(" + sign.join(self.condition(value) for value in node.values) + ")"
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return f"!({self.condition(node.operand)})"
        if isinstance(node, ast.Name) and self.model.inputs.get(node.id, ("",))[0] == "POINTS":
            return f"in->{node.id}.count > 0"
        if isinstance(node, ast.Call) and node.func.id == "lacks":
            return f"out->{node.args[0].value}.cannot"
        if isinstance(node, ast.Constant) and node.value is True:
            return "true"
        if not isinstance(node, ast.Compare) or len(node.ops) != 1:
            self.wrong(node, "no condition")
        left, right, operation = node.left, node.comparators[0], node.ops[0]
        if isinstance(operation, (ast.In, ast.NotIn)):
            each = [f"in->{left.id} == {self.model.enumerator(left.id, item.value)}"
                    for item in right.elts]
            text = "(" + " || ".join(each) + ")"
            return f"!{text}" if isinstance(operation, ast.NotIn) else text
        signs = {ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">",
                 ast.GtE: ">="}
        sign = signs[type(operation)]
        if isinstance(right, ast.Constant) and isinstance(right.value, str):
            return f"in->{left.id} {sign} {self.model.enumerator(left.id, right.value)}"
        return f"{self.number(left)} {sign} {self.number(right)}"

    def sentence(self, node, target):
        """Statements that put words together."""
        if isinstance(node, ast.IfExp):
            return [f"if (holds(&why, {self.condition(node.test)})) {{",
                    *self.indented(self.sentence(node.body, target)), "} else {",
                    *self.indented(self.sentence(node.orelse, target)), "}"]
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            return self.sentence(node.left, target) + self.sentence(node.right, target)
        if isinstance(node, ast.Name):
            return [f"words_add({target}, {self.part(node)});"]
        if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
            self.wrong(node, "no words")
        lines = []
        for text, name, how in re.findall(r"([^{]+)|\{(\w+)([+=?-]?)\}", node.value):
            lines.append(f"words_add({target}, {quoted(text)});" if text
                         else self.placed(name, how, target))
        return lines

    @staticmethod
    def indented(lines):
        return ["    " + line for line in lines]

    def placed(self, name, how, target):
        """{name} as it is shown; {name+}, {name-}, {name=} as an option takes it, rounded up, down
        or to the nearest; {name?} why it has no value."""
        model = self.model
        if name in model.inputs and model.choices(name):
            return f"words_add({target}, {model.noun}_{name}_names[in->{name}]);"
        if name in model.outputs and model.outputs[name][0] == "WORDS":
            return f"words_add({target}, out->{name}.text);"
        if name not in model.inputs and name not in model.outputs:
            raise Wrong(f"{model.noun}.{self.where}: {{{name}}} is no name")
        figure = f"&out->{name}" if name in model.outputs \
            else f"&(struct figure){{.value = in->{name}}}"
        unit = f"UNIT_{model.unit(name)}"
        if how == "?":
            return f"words_add({target}, out->{name}.cannot ? out->{name}.cannot : \"\");"
        if how:
            return f"words_option({target}, {unit}, {figure}, '{how}');"
        return f"words_figure({target}, {unit}, {figure});"


def wrapped(line, indent):
    """The line in pieces of WIDTH, cut between tokens."""
    pieces = re.findall(r'"(?:\\.|[^"\\])*"[),;]*|[^\s"]+', line)
    out, current = [], " " * indent
    for piece in pieces:
        if len(current) + len(piece) + 1 > WIDTH and current.strip():
            out.append(current.rstrip())
            current = " " * (indent + 4)
        # A string that follows ( or , without blank was one piece with it.
        current += piece + " "
    return out + [current.rstrip()]


def comment(text, indent):
    lines = wrapped(text.replace("*/", "* /"), indent + 3)
    lines[0] = " " * indent + "/* " + lines[0].strip()
    lines[-1] += " */"
    return lines


def enumerations(model):
    lines = []
    for name, (macro, _) in model.inputs.items():
        if macro == "CHOICE":
            values = model.choices(name)
            lines += wrapped("enum { " + ", ".join(model.enumerator(name, value)
                                                   for value in values) + " };", 0)
            lines += wrapped(f"static const char *const {model.noun}_{name}_names[] "
                             f"__attribute__((unused)) = {{" +
                             ", ".join(quoted(value) for value in values) + "};", 0)
    return lines


def parameters(model):
    noun = model.noun
    return f"const struct data *data, const struct {noun}_inputs *in, struct {noun}_outputs *out"


def assignments(model):
    lines = []
    for name, (macro, fields) in model.outputs.items():
        formula = fields[-1]
        if not formula or "chooser_score(" in formula:
            continue
        expression = Expression(model, formula, name)
        lines += ["", *comment(f"{name} = {formula}", 4)]
        if macro == "WORDS":
            lines.append(f"    out->{name}.text[0] = '\\0';")
            for line in expression.sentence(expression.tree, f"&out->{name}"):
                lines += wrapped(line.lstrip(), 4 + len(line) - len(line.lstrip()))
            continue
        large = model.why.get(name)
        lines += wrapped(f"out->{name} = figure_end(&why, {expression.number(expression.tree)}, "
                         f"{quoted(large) if large else 'NULL'});", 4)
    return lines


def verdict(model):
    lines = []
    for level, condition, sentence in model.verdicts:
        expression = Expression(model, condition, "verdict")
        test = expression.condition(expression.tree)
        lines += ["", *comment(f"{level}, if {condition}", 4)]
        lines += wrapped(f"if (holds(&why, {test})) {{", 4)
        words = Expression(model, repr(sentence), "verdict")
        lines.append(f'        words_add(&out->verdict, level_word(LEVEL_{level.upper()}));')
        for line in words.sentence(words.tree, "&out->verdict"):
            lines += wrapped(line, 8)
        lines += ["        return;", "    }"]
    return lines


def conjuncts(node):
    if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And):
        return [part for value in node.values for part in conjuncts(value)]
    return [node]


def moot(model):
    """A function that names the input whose value leaves another one without effect."""
    noun = model.noun
    lines = [f"static const char *{noun}_moot(const void *inputs, const char *name) {{",
             f"    const struct {noun}_inputs *in = inputs;", "",
             "    (void)in;", "    (void)name;"]
    for name, condition in model.used.items():
        lines.append(f'    if (strcmp(name, "{name}") == 0) {{')
        for part in conjuncts(ast.parse(condition, mode="eval").body):
            expression = Expression(model, ast.unparse(part), f"USED({name})")
            culprit = next(node.id for node in ast.walk(part) if isinstance(node, ast.Name))
            lines += wrapped(f"if (!({expression.condition(expression.tree)})) {{", 8)
            lines += [f'            return "{culprit}";', "        }"]
        lines += ["        return NULL;", "    }"]
    return lines + ["    return NULL;", "}"]


def tables(model):
    noun = model.noun
    lines = [f"static const struct plan_input {noun}_input_rows[] = {{"]
    for name, (macro, fields) in model.inputs.items():
        kind = macro if macro in ("CHOICE", "POINTS") else "NUMBER"
        row = [f".name = {quoted(name)}", f".offset = offsetof(struct {noun}_inputs, {name})",
               f".kind = PLAN_{kind}"]
        if macro in ("INPUT", "WHOLE"):
            rest = fields[2:] if macro == "INPUT" else fields[1:]
            row += [f".unit = UNIT_{model.unit(name)}", f".fallback = {quoted(rest[0])}",
                    f".least = {rest[1]}", f".most = {rest[2]}", f".help = {quoted(rest[3])}"]
            row += [".whole = true"] if macro == "WHOLE" else []
        elif macro == "CHOICE":
            row += [f".choices = {quoted(fields[1])}", f".fallback = {quoted(fields[2])}",
                    f".help = {quoted(fields[3])}"]
        else:
            row += [f".fallback = {quoted(fields[1])}", f".help = {quoted(fields[2])}"]
        row += [f".used = {quoted(model.used[name])}"] if name in model.used else []
        lines += wrapped("{" + ", ".join(row) + "},", 4)
    lines += ["};", f"static const struct plan_output {noun}_output_rows[] = {{"]
    for name, (macro, fields) in model.outputs.items():
        words = macro == "WORDS"
        row = [f".name = {quoted(name)}", f".offset = offsetof(struct {noun}_outputs, {name})",
               f".source = SOURCE_{fields[1 if words else 2]}",
               f".label = {quoted(fields[-2])}", f".formula = {quoted(fields[-1])}"]
        row += [".is_words = true"] if words else [f".unit = UNIT_{fields[1]}"]
        row += [".head = true"] if name in model.head else []
        lines += wrapped("{" + ", ".join(row) + "},", 4)
    return lines + ["};"]


def definition(model):
    noun, (name, summary, example) = model.noun, model.about
    return [f"const struct plan_model plan_{noun} = {{", f"    .name = {quoted(name)},",
            *wrapped(f".summary = {quoted(summary)},", 4),
            *wrapped(f".example = {quoted(example)},", 4),
            f"    .inputs = {noun}_input_rows,",
            f"    .input_count = ARRAY_SIZE({noun}_input_rows),",
            f"    .outputs = {noun}_output_rows,",
            f"    .output_count = ARRAY_SIZE({noun}_output_rows),",
            f"    .input_bytes = sizeof(struct {noun}_inputs),",
            f"    .output_bytes = sizeof(struct {noun}_outputs),",
            f"    .row = {noun}_row,", f"    .moot = {noun}_moot,", "};", ""]


def code(model):
    noun = model.noun
    lines = ["", *comment(f"{noun}: {model.about[1]}", 0), *enumerations(model)]
    if model.verdicts:
        lines += ["", *wrapped(f"static void {noun}_verdict({parameters(model)}) {{", 0),
                  "    struct why why = {0};", "", "    (void)data;", "    (void)in;",
                  "    out->verdict.text[0] = '\\0';", *verdict(model), "}"]
    lines += ["", *wrapped(f"void {noun}_plan({parameters(model)}) {{", 0),
              "    struct why why = {0};", "", "    (void)data;", "    (void)in;",
              "    (void)out;", "    (void)why;", *assignments(model)]
    lines += [f"    {model.words_by}(data, in, out);"] if model.words_by else []
    lines += [f"    {noun}_verdict(data, in, out);"] if model.verdicts else []
    lines += ["}", "",
              *wrapped(f"static bool {noun}_row(const struct data *data, const void *inputs, "
                       f"size_t row, void *ret_outputs) {{", 0)]
    if model.rows_by:
        lines += [f"    if (!{model.rows_by}(data, inputs, row, ret_outputs)) {{",
                  "        return false;", "    }"]
    else:
        lines += ["    if (row > 0) {", "        return false;", "    }"]
    return lines + [f"    {noun}_plan(data, inputs, ret_outputs);", "    return true;", "}", "",
                    *moot(model), "", *tables(model), "", *definition(model)]


def main(arguments):
    output, *paths = arguments
    models = [Model(path) for path in paths]
    lines = ["/* Made from the .def of each model by formulas.py. */",
             '#include "planner/formula.h"',
             *(f'#include "planner/{model.noun}.h"' for model in models),
             '#include "planner/words.h"', "#include <string.h>"]
    for model in models:
        lines += code(model)
    with open(output, "w", encoding="utf-8") as file:
        file.write("\n".join(lines))


try:
    main(sys.argv[1:])
except Wrong as wrong:
    raise SystemExit(f"formulas.py: {wrong}") from wrong

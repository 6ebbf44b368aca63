package yaml

import (
	"fmt"
	"strings"
)

// syntaxProblems are what the library says of a text that is no YAML, and the same in the words of those
// who write it, with a remedy. The first whose says is part of the message counts.
var syntaxProblems = []struct{ says, plain, remedy string }{
	{"could not find expected ':'", "this line, or the one above it, has no colon after a name", "write name: value, with a blank after the colon"},
	{"cannot start any token", "this value begins with a character that needs quotes", "put the value into quotes"},
	{"expected '-' indicator", "this line is neither an entry of the list above it nor a field beside that list", "begin each entry with - at the column of the other entries; indent a field like the name of the list"},
	{"expected ',' or ']'", "a list that begins with [ has no ] before this place, or lacks a comma", "close the list with ], or put a comma between its entries"},
	{"expected ',' or '}'", "fields that begin with { have no } before this place, or lack a comma", "close the fields with }, or put a comma between them"},
	{"expected node content", "a value is missing here, or a [ or { has no end", "write the value, or close the list with ] or the fields with }"},
	{"unexpected end of stream", "a text in quotes has no quote at its end", "add the quote that is missing, here or in a line above"},
	{"unknown escape character", `this text in double quotes has a \ before a character that needs none`, `write \\ for \, or use single quotes`},
	{"block sequence entries are not allowed", "an entry of a list cannot follow a name on the same line", "begin each entry with - on a line of its own"},
	{"expected comment or line break", "something follows | or > on the same line", "begin the text on the next line, indented"},
}

// explainSyntax says in plain words what is wrong at a column of a line, and what to write instead.
func explainSyntax(message, line string, col, depth int) (plain, remedy string) {
	before := strings.TrimSpace(line[:min(max(col-1, 0), len(line))])
	switch {
	case strings.HasPrefix(strings.TrimLeft(line, " "), "\t"):
		return "a tab indents this line", "indent with blanks, not tabs"
	case strings.Contains(message, "exceeded max depth"):
		return message, fmt.Sprintf("no more than %d levels are read", depth)
	case strings.Contains(message, "mapping values are not allowed"):
		if name, _, ok := strings.Cut(line, ": "); ok && strings.Contains(before, ": ") {
			return "this value contains a colon and a blank", fmt.Sprintf(`put the value into quotes: %.40s: "…"`, strings.TrimSpace(name))
		}
		return "this field is indented below a line that already has a value, or that lacks its colon", "give the fields of one level the same indentation, and write name: after each name"
	case strings.Contains(message, "did not find expected key") && before != "":
		return "something follows the end of a value", "remove it, or put the whole value into quotes"
	case strings.Contains(message, "did not find expected key"):
		return "the indentation of this line matches no field above it", "give the fields of one level the same indentation"
	}
	for _, p := range syntaxProblems {
		if strings.Contains(message, p.says) {
			return p.plain, p.remedy
		}
	}
	return message, ""
}

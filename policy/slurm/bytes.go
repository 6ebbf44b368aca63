package slurm

import (
	"strings"
	"unicode"
)

// readable is a file with ? in the place of bytes that are no text. Where they stand outside
// of comments, the line is refused: what it says is not what was written.
func (im *importer) readable(f File) File {
	text := printable(f.Text)
	if text == f.Text {
		return f
	}
	for i, l := range strings.Split(strings.ReplaceAll(f.Text, "\r\n", "\n"), "\n") {
		if l = uncomment(l); printable(l) != l {
			im.refuse(setting{file: f.Name, line: i + 1, key: printable(l), alone: true}, "it has bytes that are no text in UTF-8, which are read as ?: write the file anew, or mend the line")
		}
	}
	f.Text = text
	return f
}

func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\r' && r != '\t' && (unicode.IsControl(r) || r == '\u2028' || r == '\u2029' || r == '\ufeff') {
			return '?'
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
}

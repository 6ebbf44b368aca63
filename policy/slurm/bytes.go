package slurm

import (
	"strings"
	"unicode"
)

// maskBinary is a file with ? in the place of bytes that are no text. Where they stand outside
// of comments, the line is refused: what it says is not what was written.
func (im *importer) maskBinary(f File) File {
	text := printableText(f.Text)
	if text == f.Text {
		return f
	}
	for i, l := range strings.Split(strings.ReplaceAll(f.Text, "\r\n", "\n"), "\n") {
		if l = stripComment(l); printableText(l) != l {
			im.refuseSetting(setting{file: f.Name, line: i + 1, key: printableText(l), alone: true}, "the line has bytes that are no text in UTF-8, and they are read as ?: correct the line")
		}
	}
	f.Text = text
	return f
}

func printableText(s string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\r' && r != '\t' && (unicode.IsControl(r) || r == '\u2028' || r == '\u2029' || r == '\ufeff') {
			return '?'
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
}

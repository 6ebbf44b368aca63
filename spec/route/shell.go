package route

import "strings"

// shellReader finds the simple commands of a shell script: their words, without quotes, and
// the assignments before them. Comments are left out, lines that a backslash continues are
// one, and commands inside of $(…), `…`, subshells, loops and conditions are commands of their
// own. Text of here documents is no command, unless a shell reads it.
//
// It reads what it can and has no errors: a script may be anything. Nothing is expanded.
type shellReader struct {
	text  string
	pos   int
	line  int // of pos
	depth int // of substitutions

	command func(c *shellCommand)
	code    func(text string, line int) // a line of a here document that an interpreter reads

	documents []hereDocument // that begin at the next line
}

// shellCommand is a simple command.
type shellCommand struct {
	words    []string
	assigned []string // NAME=value before the words
	line     int      // where it begins
}

type hereDocument struct {
	end    string // the line that ends it
	tabs   bool   // which may be indented by tabs
	shell  bool   // a shell reads it
	coding bool   // another interpreter reads it
}

// maxExpression is how many bytes an expansion ${…} or $((…)) may have.
const maxExpression = 1024

// maxDepth bounds substitutions inside of each other.
const maxDepth = 16

// readShell hands over the commands of a script whose first line is line number first.
func readShell(text string, first, depth int, command func(*shellCommand), code func(string, int)) {
	r := &shellReader{text: text, line: first, depth: depth, command: command, code: code}
	for r.pos < len(r.text) {
		r.readList(0)
		if r.pos < len(r.text) { // what closes nothing
			r.pos++
		}
	}
}

// readList reads commands up to the byte that closes it, which is not taken; 0: to the end.
func (r *shellReader) readList(closing byte) {
	c := &shellCommand{line: r.line}
	from := len(r.documents)
	finish := func() {
		r.finishCommand(c, from)
		c, from = &shellCommand{line: r.line}, len(r.documents)
	}
	for r.pos < len(r.text) {
		b := r.text[r.pos]
		switch {
		case closing != 0 && b == closing:
			finish()
			return
		case b == '\n':
			finish()
			r.pos++
			r.line++
			if closing != '`' {
				r.readDocuments()
			}
			c.line, from = r.line, len(r.documents)
		case b == ' ' || b == '\t' || b == '\r':
			r.pos++
		case b == '\\' && strings.HasPrefix(r.text[r.pos:], "\\\n"):
			r.pos += 2
			r.line++
		case b == '#':
			r.skipLine()
		case b == '&' && strings.HasPrefix(r.text[r.pos:], "&>"):
			r.pos++
		case b == ';' || b == '&' || b == '|':
			finish()
			r.pos++
		case b == '(' && r.depth < maxDepth:
			finish()
			r.pos++
			r.nested(')')
			c.line = r.line
		case b == '(' || b == ')':
			finish()
			r.pos++
		case b == '<' || b == '>':
			r.readRedirection()
		default:
			line := r.line
			word, plain := r.readWord(closing)
			if r.pos < len(r.text) && (r.text[r.pos] == '<' || r.text[r.pos] == '>') && isNumber(word) {
				break // of a file descriptor
			}
			if len(c.words)+len(c.assigned) == 0 {
				c.line = line
			}
			c.add(word, plain)
		}
	}
	finish()
}

// nested reads a list inside of another one, with what closes it.
func (r *shellReader) nested(closing byte) {
	r.depth++
	r.readList(closing)
	r.depth--
	if r.pos < len(r.text) {
		r.pos++
	}
}

// add adds a word to a command. Words of the shell's own before a command are left out.
func (c *shellCommand) add(word string, plain bool) {
	if len(c.words) == 0 {
		switch word {
		case "if", "then", "else", "elif", "fi", "do", "done", "while", "until", "{", "}", "!", "coproc", "esac":
			if plain {
				return
			}
		}
		if name, _, ok := strings.Cut(word, "="); ok && isName(strings.TrimSuffix(name, "+")) {
			c.assigned = append(c.assigned, word)
			return
		}
	}
	if len(c.words) < maxWords {
		c.words = append(c.words, word)
	}
}

// maxWords bounds the words of a command that are looked at.
const maxWords = 400

func (r *shellReader) finishCommand(c *shellCommand, from int) {
	interpreter := ""
	for _, w := range c.words {
		if base := baseName(w); isInterpreter(base) {
			interpreter = base
			break
		}
	}
	for i := from; i < len(r.documents); i++ {
		d := &r.documents[i]
		d.shell = isShell(interpreter)
		d.coding = interpreter != "" && !d.shell
	}
	if len(c.words) > 0 && (c.words[0] == "for" || c.words[0] == "case" || c.words[0] == "select" || c.words[0] == "function") {
		return
	}
	if len(c.words)+len(c.assigned) > 0 {
		r.command(c)
	}
}

func (r *shellReader) skipLine() {
	if i := strings.IndexByte(r.text[r.pos:], '\n'); i >= 0 {
		r.pos += i
		return
	}
	r.pos = len(r.text)
}

// readRedirection reads <, >, << and the like, with the word behind it.
func (r *shellReader) readRedirection() {
	rest := r.text[r.pos:]
	switch {
	case strings.HasPrefix(rest, "<<<"):
		r.pos += 3
	case strings.HasPrefix(rest, "<<"):
		r.pos += 2
		d := hereDocument{}
		if d.tabs = strings.HasPrefix(r.text[r.pos:], "-"); d.tabs {
			r.pos++
		}
		r.skipBlanks()
		d.end, _ = r.readWord(0)
		if d.end != "" && len(r.documents) < maxWords {
			r.documents = append(r.documents, d)
		}
		return
	case (strings.HasPrefix(rest, "<(") || strings.HasPrefix(rest, ">(")) && r.depth < maxDepth:
		r.pos += 2
		r.nested(')')
		return
	default:
		for r.pos < len(r.text) && strings.IndexByte("<>&|", r.text[r.pos]) >= 0 {
			r.pos++
		}
	}
	r.skipBlanks()
	r.readWord(0)
}

func (r *shellReader) skipBlanks() {
	for r.pos < len(r.text) && (r.text[r.pos] == ' ' || r.text[r.pos] == '\t') {
		r.pos++
	}
}

// readDocuments reads the here documents that begin at this line.
func (r *shellReader) readDocuments() {
	list := r.documents
	r.documents = nil
	for _, d := range list {
		first, from := r.line, r.pos
		end := r.pos
		for r.pos < len(r.text) {
			l, _, ok := strings.Cut(r.text[r.pos:], "\n")
			end = r.pos
			r.pos += len(l)
			if ok {
				r.pos++
				r.line++
			}
			l = strings.TrimSuffix(l, "\r")
			if d.tabs {
				l = strings.TrimLeft(l, "\t")
			}
			if l == d.end {
				break
			}
			end = r.pos
			if d.coding {
				r.code(l, r.line-1)
			}
		}
		if d.shell && r.depth < maxDepth {
			readShell(r.text[from:end], first, r.depth+1, r.command, r.code)
		}
	}
}

// readWord reads a word; plain: it has no quotes. closing is what ends the list that it is in.
func (r *shellReader) readWord(closing byte) (word string, plain bool) {
	var b strings.Builder
	plain = true
	for r.pos < len(r.text) {
		c := r.text[r.pos]
		switch {
		case strings.IndexByte(" \t\n\r;&|()<>", c) >= 0, closing == '`' && c == '`':
			return b.String(), plain
		case c == '\\':
			r.pos++
			if r.pos == len(r.text) {
				return b.String(), plain
			}
			if r.text[r.pos] == '\n' {
				r.line++
			} else {
				b.WriteByte(r.text[r.pos])
			}
			r.pos++
		case c == '\'':
			plain = false
			r.pos++
			r.readSingle(&b)
		case c == '"':
			plain = false
			r.pos++
			r.readDouble(&b)
		case c == '`' || c == '$':
			r.readDollar(&b)
		default:
			b.WriteByte(c)
			r.pos++
		}
	}
	return b.String(), plain
}

// readSingle reads text up to a single quote.
func (r *shellReader) readSingle(b *strings.Builder) {
	text, _, ok := strings.Cut(r.text[r.pos:], "'")
	b.WriteString(text)
	r.line += strings.Count(text, "\n")
	if r.pos += len(text); ok {
		r.pos++
	}
}

// readDouble reads text up to a double quote.
func (r *shellReader) readDouble(b *strings.Builder) {
	for r.pos < len(r.text) {
		switch c := r.text[r.pos]; {
		case c == '"':
			r.pos++
			return
		case c == '\\' && r.pos+1 < len(r.text):
			if r.text[r.pos+1] == '\n' {
				r.line++
			} else {
				b.WriteByte(r.text[r.pos+1])
			}
			r.pos += 2
		case c == '`' || c == '$':
			r.readDollar(b)
		default:
			if c == '\n' {
				r.line++
			}
			b.WriteByte(c)
			r.pos++
		}
	}
}

// readDollar reads a variable, which stays as it is written, or a substitution, whose commands
// are read and which is "$()" in the word.
func (r *shellReader) readDollar(b *strings.Builder) {
	rest := r.text[r.pos:]
	switch {
	case r.depth >= maxDepth:
		b.WriteByte(rest[0])
		r.pos++
	case rest[0] == '`':
		r.pos++
		b.WriteString("$()")
		r.nested('`')
	case strings.HasPrefix(rest, "$(("):
		end := strings.Index(rest[:min(len(rest), maxExpression)], "))")
		if end < 0 {
			end = 1
		}
		r.line += strings.Count(rest[:end+2], "\n")
		r.pos += end + 2
		b.WriteString("$(())")
	case strings.HasPrefix(rest, "$("):
		r.pos += 2
		b.WriteString("$()")
		r.nested(')')
	case strings.HasPrefix(rest, "${"):
		name, _, ok := strings.Cut(rest[:min(len(rest), maxExpression)], "}")
		if !ok || strings.Contains(name, "\n") {
			name, ok = "${", false
		}
		b.WriteString(name)
		if r.pos += len(name); ok {
			b.WriteByte('}')
			r.pos++
		}
	default:
		b.WriteByte('$')
		r.pos++
	}
}

func isNumber(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// isName reports whether a text is the name of a variable.
func isName(s string) bool {
	if s == "" || s[0] >= '0' && s[0] <= '9' {
		return false
	}
	for i := range len(s) {
		if c := s[i]; c != '_' && (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'z') {
			return false
		}
	}
	return true
}

// baseName is the last part of a path.
func baseName(s string) string { return s[strings.LastIndexByte(s, '/')+1:] }

func isShell(name string) bool {
	switch name {
	case "bash", "sh", "zsh", "dash", "ksh":
		return true
	}
	return false
}

// isInterpreter reports whether a program runs the here document that it is given.
func isInterpreter(name string) bool {
	return isShell(name) || isPython(name) || name == "torchrun"
}

func isPython(name string) bool {
	rest, ok := strings.CutPrefix(name, "python")
	return ok && strings.Trim(rest, "0123456789.") == "" || name == "ipython"
}

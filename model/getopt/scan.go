package getopt

import "strings"

// Scanner takes a command line apart. It is used by one goroutine.
type Scanner struct {
	table Table
	n     int
	word  func(index int) string

	next    int    // first word that was not read
	letters string // the rest of a word of short options
	at      int    // index of that word
}

// New reads a list of words.
func New(table Table, words []string) *Scanner {
	return NewFunc(table, len(words), func(i int) string { return words[i] })
}

// NewFunc reads n words, which a caller keeps in a form of its own.
func NewFunc(table Table, n int, word func(index int) string) *Scanner {
	return &Scanner{table: table, n: n, word: word}
}

// Next returns what comes next. After a mistake it goes on behind it.
func (s *Scanner) Next() Item {
	if s.letters != "" {
		return s.scanLetter()
	}
	if s.next == s.n {
		return Item{Kind: End, Word: s.n, Next: s.n}
	}
	text := s.word(s.next)
	s.at = s.next
	s.next++
	switch {
	case text == "--":
		return Item{Kind: Terminator, Word: s.at, Next: s.next}
	case strings.HasPrefix(text, "--"):
		return s.scanLong(text[2:])
	case len(text) > 1 && text[0] == '-':
		s.letters = text[1:]
		return s.scanLetter()
	}
	return Item{Kind: Plain, Word: s.at, Next: s.next}
}

// scanLong reads "name" or "name=value".
func (s *Scanner) scanLong(text string) Item {
	name, value, hasValue := strings.Cut(text, "=")
	it := Item{Name: name, Value: value, HasValue: hasValue, Word: s.at, Next: s.next}
	if hasValue {
		it.ValueAt = len("--=") + len(name)
	}
	if it.Index, it.Possible = s.table.Long(name); it.Index < 0 {
		if it.Kind = Unknown; len(it.Possible) > 0 {
			it.Kind = Ambiguous
		}
		return it
	}
	it.Option = s.table.Option(it.Index)
	if hasValue && it.Option.Arg == None {
		it.Kind = Unwanted
		return it
	}
	return s.takeValue(it)
}

// scanLetter reads one of the short options of a word.
func (s *Scanner) scanLetter() Item {
	it := Item{Name: s.letters[:1], Letter: true, Word: s.at, Next: s.next}
	s.letters = s.letters[1:]
	if it.Index = s.table.Short(it.Name[0]); it.Index < 0 {
		it.Kind = Unknown
		return it
	}
	it.Option = s.table.Option(it.Index)
	if it.Option.Arg != None && s.letters != "" {
		it.Value, it.HasValue, it.ValueAt = s.letters, true, len(s.word(s.at))-len(s.letters)
		s.letters = ""
	}
	return s.takeValue(it)
}

// takeValue takes the value from the next word where the option has it there.
func (s *Scanner) takeValue(it Item) Item {
	it.Kind = Found
	if it.HasValue {
		return it
	}
	switch it.Option.Arg {
	case Required:
		if s.next == s.n {
			it.Kind = Missing
			return it
		}
	case Numbers:
		if s.next == s.n || strings.HasPrefix(s.word(s.next), "-") {
			return it
		}
	default:
		return it
	}
	it.Value, it.HasValue = s.word(s.next), true
	s.next++
	it.Next = s.next
	return it
}

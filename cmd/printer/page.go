package printer

import "time"

// Page says how and when something is shown.
type Page struct {
	ListOptions

	Now    time.Time
	Zone   *time.Location // nil: UTC
	Width  int            // columns of the terminal; 0: no terminal, nothing is cut
	Colour bool
}

// Tone says what a piece of text means; a Page with colours paints it.
type Tone uint8

// The tones.
const (
	Plain  Tone = iota
	Good        // it runs, it is up, it ended well
	Warn        // it waits for somebody, it drains
	Bad         // it failed, it is down
	Dim         // less important than its neighbours
	Strong      // the answer itself, headings
	Accent      // to paste into the next command
)

var paint = [...]string{Plain: "", Good: "32", Warn: "33", Bad: "31", Dim: "2", Strong: "1", Accent: "36"}

// Paint returns the text in its tone, or as it is on a page without colours. The
// text must be clean.
func (p Page) Paint(t Tone, text string) string {
	if !p.Colour || t == Plain || text == "" {
		return text
	}
	return "\x1b[" + paint[t] + "m" + text + "\x1b[0m"
}

// localTime returns the moment in the page's zone.
func (p Page) localTime(t time.Time) time.Time {
	if p.Zone == nil {
		return t.UTC()
	}
	return t.In(p.Zone)
}

// ListOptions say how a table is shown. The zero value shows all of it.
type ListOptions struct {
	NoHeaders bool
	SortBy    string // title of a column
	Limit     int    // rows; 0: all
}

package transport

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/model/fault"
)

// ListQuery has the parameters of a list that is kept in memory, in the words of GET /v1/jobs. (It is exported
// because parameters in an embedded type are found only so.)
type ListQuery struct {
	Match    string   `query:"match" doc:"rows that have this text in their names or owners, in upper or lower case"`
	Users    []string `query:"users" doc:"names of owners"`
	Accounts []string `query:"accounts"`
	States   []string `query:"states" doc:"in upper or lower case"`
	Sort     string   `query:"sort" doc:"with - before it, largest first; left out: name"`
	Offset   int      `query:"offset" minimum:"0" doc:"rows before the page; a cursor outranks it"`
	Limit    int      `query:"limit" minimum:"0" maximum:"10000" doc:"rows of the page; left out: all"`
	Cursor   string   `query:"cursor" doc:"next of the page before"`
}

// ListedRow is what a row of a list is found by. An empty account is one without a name.
type ListedRow struct {
	Name    string // unique in its list; equal rows are in the order of names
	Account string
	Owner   string
	State   string
}

// List filters, sorts and pages rows of one kind. Its functions must not change a row.
type List[T any] struct {
	Noun   string // plural, for errors: services
	States []string
	Row    func(*T) ListedRow

	// Keys are what rows are sorted by beside their names, by the word for it: a number, then a text.
	Keys map[string]func(*T) (float64, string)
}

// ListPage is a page of a list, and what is true of all pages.
type ListPage[T any] struct {
	Rows   []T
	Next   string         // cursor of the next page; empty: this is the last one
	Total  int            // rows of all pages
	States map[string]int // rows by state, of any state
}

// listCursor is the last row of a page, and the order that it is of.
type listCursor struct {
	Sort   string  `json:"s"`
	Number float64 `json:"n,omitempty"`
	Text   string  `json:"t,omitempty"`
	Name   string  `json:"k"`
}

// Page selects a page of rows. A word that the list does not know is fault.Invalid.
func (l *List[T]) Page(q *ListQuery, all []T) (ListPage[T], error) {
	out := ListPage[T]{Rows: []T{}, States: map[string]int{}}
	for _, state := range q.States {
		if !slices.ContainsFunc(l.States, func(known string) bool { return strings.EqualFold(known, state) }) {
			return out, fault.New(fault.Invalid, "states: %.40q is no state of %s", state, l.Noun).Advise("use some of %s", strings.Join(l.States, ", "))
		}
	}
	word := cmp.Or(q.Sort, "name")
	by, down := strings.CutPrefix(word, "-")
	key := l.Keys[by]
	if by == "name" {
		key = func(*T) (float64, string) { return 0, "" }
	}
	if key == nil {
		return out, RefuseSort(l.Noun, by, append(slices.Collect(maps.Keys(l.Keys)), "name"))
	}
	type sortedRow struct {
		listCursor
		at int // in all
	}
	compare := func(a, b *listCursor) int {
		c := cmp.Or(cmp.Compare(a.Number, b.Number), cmp.Compare(a.Text, b.Text), cmp.Compare(a.Name, b.Name))
		if down {
			return -c
		}
		return c
	}
	var rows []sortedRow
	match := strings.ToLower(q.Match)
	for i := range all {
		is := l.Row(&all[i])
		if !is.matches(q, match) {
			continue
		}
		out.States[is.State]++
		if len(q.States) == 0 || slices.ContainsFunc(q.States, func(s string) bool { return strings.EqualFold(s, is.State) }) {
			number, text := key(&all[i])
			rows = append(rows, sortedRow{listCursor{word, number, text, is.Name}, i})
		}
	}
	slices.SortFunc(rows, func(a, b sortedRow) int { return compare(&a.listCursor, &b.listCursor) })
	out.Total = len(rows)
	from := min(q.Offset, len(rows))
	if q.Cursor != "" {
		last, err := readListCursor(q.Cursor, word)
		if err != nil {
			return out, err
		}
		from, _ = slices.BinarySearchFunc(rows, last, func(a sortedRow, b listCursor) int { return cmp.Or(compare(&a.listCursor, &b), -1) })
	}
	rows = rows[from:]
	if q.Limit > 0 && len(rows) > q.Limit {
		rows = rows[:q.Limit]
		b, err := json.Marshal(rows[len(rows)-1].listCursor)
		if err != nil {
			return out, err
		}
		out.Next = base64.RawURLEncoding.EncodeToString(b)
	}
	for i := range rows {
		out.Rows = append(out.Rows, all[rows[i].at])
	}
	return out, nil
}

// matches reports whether a row is among those that are asked for, in any state.
func (r *ListedRow) matches(q *ListQuery, match string) bool {
	return (len(q.Users) == 0 || slices.Contains(q.Users, r.Owner)) && (len(q.Accounts) == 0 || slices.Contains(q.Accounts, r.Account)) &&
		(strings.Contains(strings.ToLower(r.Name), match) || strings.Contains(strings.ToLower(r.Owner), match))
}

func readListCursor(text, word string) (listCursor, error) {
	var c listCursor
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err == nil {
		err = json.Unmarshal(b, &c)
	}
	if err != nil || c.Sort != word {
		return c, RefuseCursor(text, word)
	}
	return c, nil
}

// RefuseSort says by which words a list can be sorted.
func RefuseSort(noun, word string, known []string) error {
	slices.Sort(known)
	return fault.New(fault.Invalid, "sort: %s are not sorted by %q", noun, word).Advise("by one of %s; with - before it, largest first", strings.Join(known, ", "))
}

// RefuseCursor refuses a cursor that is not of the order sort.
func RefuseCursor(cursor, sort string) error {
	return fault.New(fault.Invalid, "cursor: %q is none that this server gave out for sort=%s", cursor, sort).Advise("begin without a cursor")
}

// SetTotal has the answer say how many rows all pages of a list have.
func (c *Call) SetTotal(total int) { c.W.Header().Set(api.TotalHeader, strconv.Itoa(total)) }

package printer

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/coxswain-sched/coxswain/api"
)

// Shares is how accounts and users stand, indented as the tree.
func Shares(list []api.Share) *Table {
	t := &Table{Columns: []Column{
		{Title: "ACCOUNT"},
		{Title: "USER"},
		{Title: "SHARES", Right: true},
		{Title: "OF SIBLINGS", Right: true},
		{Title: "USED", Right: true},
		{Title: "OF ACCOUNT", Right: true},
		{Title: "LEVEL", Right: true},
		{Title: "FAIR SHARE", Right: true},
	}}
	for i := range list {
		s := &list[i]
		level, factor, shares := "inf", "", strconv.FormatInt(s.Raw, 10)
		if s.Level != nil {
			level = strconv.FormatFloat(*s.Level, 'f', 6, 64)
		}
		if s.User != "" {
			factor = strconv.FormatFloat(s.Factor, 'f', 6, 64)
		}
		if s.Raw < 0 {
			shares = "parent"
		}
		t.Rows = append(t.Rows, []Cell{
			textCell(strings.Repeat(" ", s.Depth) + s.Account), textCell(s.User), textCell(shares), textCell(strconv.FormatFloat(s.Norm, 'f', 6, 64)),
			textCell(strconv.FormatFloat(math.Round(s.Used), 'f', 0, 64)), textCell(strconv.FormatFloat(s.Usage, 'f', 6, 64)), textCell(level), textCell(factor),
		})
	}
	return t
}

// SomeShares leaves out of a tree what is neither one of the accounts nor stands above
// or below one, and users who are not named. Nobody named is everybody.
func SomeShares(list []api.Share, accounts, users []string) (out []api.Share) {
	above := map[string]string{}
	for i := range list {
		if list[i].User == "" {
			above[list[i].Account] = list[i].Parent
		}
	}
	within := func(of string, names []string) bool { // an account of that name, or one below it
		for range len(above) {
			if slices.Contains(names, of) {
				return true
			}
			of = above[of]
		}
		return false
	}
	for _, s := range list {
		below := len(accounts) == 0 || within(s.Account, accounts)
		leads := slices.ContainsFunc(accounts, func(a string) bool { return within(a, []string{s.Account}) })
		if s.User == "" && (below || leads) || s.User != "" && below && (len(users) == 0 || slices.Contains(users, s.User)) {
			out = append(out, s)
		}
	}
	return out
}

// Priority is how the place of a waiting job in the queue comes about.
func Priority(p Page, x *api.Priority) string {
	var b strings.Builder
	fmt.Fprintf(&b, "job %s has priority %d", x.Job, x.Priority)
	if x.Tier != 0 {
		fmt.Fprintf(&b, ", in a partition of tier %d", x.Tier)
	}
	b.WriteString("\n")
	if len(x.Parts) == 0 {
		b.WriteString("Nothing is reckoned: it was set, or the site's rules weigh nothing.\n")
		return b.String()
	}
	t := &Table{Columns: []Column{{Title: "FACTOR"}, {Title: "IS", Right: true}, {Title: "WEIGHT", Right: true}, {Title: "POINTS", Right: true}}}
	sum := 0.0
	for _, part := range x.Parts {
		sum += part.Points
		t.Rows = append(t.Rows, []Cell{textCell(part.Name), textCell(shortNumber(part.Factor)), textCell(shortNumber(part.Weight)), textCell(shortNumber(part.Points))})
	}
	t.Rows = append(t.Rows, []Cell{textCell("sum"), textCell(""), textCell(""), textCell(shortNumber(sum))})
	_ = t.Write(&b, p) // a string takes everything
	if x.Ageless != "" {
		fmt.Fprintf(&b, "It does not grow older: %s.\n", x.Ageless)
	}
	return b.String()
}

// Priorities is a line for each waiting job.
func Priorities(list []api.Priority) *Table {
	t := &Table{Columns: []Column{{Title: "JOB"}, {Title: "USER"}, {Title: "ACCOUNT"}, {Title: "PARTITION"}, {Title: "PRIORITY", Right: true}}}
	var names []string
	for i := range list {
		for _, part := range list[i].Parts {
			if part.Weight != 0 && !slices.Contains(names, part.Name) && (part.Name != "site" && part.Name != "nice" || part.Points != 0) {
				names = append(names, part.Name)
			}
		}
	}
	for _, name := range names {
		t.Columns = append(t.Columns, Column{Title: strings.ToUpper(strings.ReplaceAll(name, "_", " ")), Right: true})
	}
	for i := range list {
		x := &list[i]
		row := []Cell{textCell(x.Job), textCell(x.User), textCell(x.Account), textCell(x.Partition), textCell(strconv.FormatInt(x.Priority, 10))}
		for _, name := range names {
			points := ""
			for _, part := range x.Parts {
				if part.Name == name {
					points = strconv.FormatFloat(part.Points, 'f', 2, 64)
				}
			}
			row = append(row, textCell(points))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// shortNumber prints what a factor has, without needless digits.
func shortNumber(x float64) string {
	s := strconv.FormatFloat(x, 'f', 6, 64)
	s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	if s == "-0" || s == "" {
		return "0"
	}
	return s
}

package printer

import (
	"slices"
	"strconv"
	"strings"

	"github.com/coxswain-sched/coxswain/api"
)

// Quotas is the trees of accounts with quotas, indented: a line for each resource of
// each flavour.
func Quotas(list []api.QuotaAccount) *Table {
	t := &Table{Columns: []Column{
		{Title: "ACCOUNT"},
		{Title: "SHARE", Right: true},
		{Title: "JOBS", Right: true},
		{Title: "FLAVOUR"},
		{Title: "RESOURCE"},
		{Title: "NOMINAL", Right: true},
		{Title: "HELD", Right: true},
		{Title: "BORROWED", Right: true},
		{Title: "LENT", Right: true},
		{Title: "PENDING", Right: true},
		{Title: "BORROWS OF", Least: 12},
	}}
	for i := range list {
		x := &list[i]
		name, share := strings.Repeat(" ", x.Depth)+x.Account, ""
		if x.Own {
			name += " (its own jobs)"
		}
		if x.Share != nil {
			if share = quantityText(*x.Share); *x.Share < 0 {
				share = "inf"
			}
		}
		jobs := strconv.Itoa(x.Running)
		if x.Pending > 0 {
			jobs += "+" + strconv.Itoa(x.Pending)
		}
		first := []Cell{{Text: name, Tone: Accent}, textCell(share), textCell(jobs)}
		if len(x.Amounts) == 0 {
			t.Rows = append(t.Rows, append(first, textCell(""), textCell(""), textCell(""), textCell(""), textCell(""), textCell(""), textCell(""), textCell("")))
		}
		for k := range x.Amounts {
			a := &x.Amounts[k]
			t.Rows = append(t.Rows, append(slices.Clip(first), textCell(a.Flavor), textCell(a.Resource), textCell(quantityText(a.Nominal)), textCell(quantityText(a.Held)),
				nonZeroCell(a.Borrowed), nonZeroCell(a.Lent), nonZeroCell(a.Pending), textCell(strings.Join(a.From, ","))))
		}
	}
	return t
}

func quantityText(x float64) string { return shortNumber(x) }

// nonZeroCell leaves nothing where there is nothing, so that what there is meets the eye.
func nonZeroCell(x float64) Cell {
	if x == 0 {
		return textCell("")
	}
	return textCell(quantityText(x))
}

// SomeQuotas leaves out of the trees what is neither one of the accounts nor stands
// above or below one. Nobody named is everybody.
func SomeQuotas(list []api.QuotaAccount, accounts []string) (out []api.QuotaAccount) {
	above := map[string]string{}
	for i := range list {
		if !list[i].Own {
			above[list[i].Account] = list[i].Parent
		}
	}
	within := func(of, name string) bool {
		for range len(above) + 1 {
			if of == name {
				return true
			}
			of = above[of]
		}
		return false
	}
	for i := range list {
		if len(accounts) == 0 || slices.ContainsFunc(accounts, func(name string) bool {
			return within(list[i].Account, name) || within(name, list[i].Account)
		}) {
			out = append(out, list[i])
		}
	}
	return out
}

package plan

// Slowly is Earliest by asking every instant at which a node could begin.
func Slowly[I ~int64](plain []I, spans []Span[I], need int) I {
	best := I(Never)
	try := func(at I) {
		n := 0
		for _, p := range plain {
			if p <= at && p != Never {
				n++
			}
		}
		for _, s := range spans {
			if s.From <= at && at < s.End {
				n++
			}
		}
		if n >= need && at < best {
			best = at
		}
	}
	for _, p := range plain {
		try(p)
	}
	for _, s := range spans {
		try(s.From)
	}
	return best
}

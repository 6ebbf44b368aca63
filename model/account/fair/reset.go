package fair

import "time"

// NextReset is the first second after another one at which usage begins anew, in UTC:
// daily and weekly (Sunday) at midnight, monthly, quarterly and yearly at the
// midnight that begins the period. 0: never, for any other word.
func NextReset(period string, after int64) int64 {
	t := time.Unix(after, 0).UTC()
	y, m, d := t.Date()
	switch period {
	case "daily":
		d++
	case "weekly":
		d += 7 - int(t.Weekday())
	case "monthly":
		m, d = m+1, 1
	case "quarterly":
		m, d = (m-1)/3*3+4, 1
	case "yearly":
		y, m, d = y+1, 1, 1
	default:
		return 0
	}
	return time.Date(y, m, d, 0, 0, 0, 0, time.UTC).Unix()
}

// LastReset is the second, not after another one, at which usage last began anew; 0 where it
// never does.
func LastReset(period string, until int64) int64 {
	t := time.Unix(until, 0).UTC()
	y, m, d := t.Date()
	switch period {
	case "daily":
	case "weekly":
		d -= int(t.Weekday())
	case "monthly":
		d = 1
	case "quarterly":
		m, d = (m-1)/3*3+1, 1
	case "yearly":
		m, d = 1, 1
	default:
		return 0
	}
	return time.Date(y, m, d, 0, 0, 0, 0, time.UTC).Unix()
}

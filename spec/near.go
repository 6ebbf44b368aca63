package spec

// Distance counts the letters to insert, drop, replace or swap with their neighbour
// to make b of a (optimal string alignment), for "did you mean". A word of more than
// 64 letters is near to nothing: its distance is its length.
func Distance(a, b string) int {
	if len(a) > 64 {
		return len(a)
	}
	before, last, now := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range now {
		now[j] = j
	}
	for i := 1; i <= len(a); i++ {
		before, last, now = last, now, before
		now[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			now[j] = min(last[j]+1, now[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				now[j] = min(now[j], before[j-2]+1)
			}
		}
	}
	return now[len(b)]
}

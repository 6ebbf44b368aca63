package simulate

import "time"

// dice are chances that follow from a seed and a name alone. A run does not draw
// from a stream, so leaving one request out of it moves nothing else.
type dice uint64

func mixBits(h uint64) uint64 {
	h ^= h >> 30
	h *= 0xbf58476d1ce4e5b9
	h ^= h >> 27
	h *= 0x94d049bb133111eb
	return h ^ h>>31
}

// rollBits returns 64 bits for a name.
func (d dice) rollBits(what, name string) uint64 {
	h := uint64(d) ^ 0x9e3779b97f4a7c15
	for i := range len(what) {
		h = (h ^ uint64(what[i])) * 0x100000001b3
	}
	h = mixBits(h + 0x9e3779b97f4a7c15)
	for i := range len(name) {
		h = (h ^ uint64(name[i])) * 0x100000001b3
	}
	return mixBits(h)
}

// happensOnce is true once in so many times.
func (d dice) happensOnce(what, name string, perMille float64) bool {
	return float64(d.rollBits(what, name)%1_000_000) < perMille*1000
}

// stream is a generator for what one name needs many numbers for.
type stream uint64

func (d dice) streamFor(what, name string) *stream {
	s := stream(d.rollBits(what, name))
	return &s
}

func (s *stream) next() uint64 {
	*s += 0x9e3779b97f4a7c15
	return mixBits(uint64(*s))
}

func (s *stream) intBelow(n int) int { return int(s.next() % uint64(n)) }

// happensIn is true with so many per cent.
func (s *stream) happensIn(perCent int) bool { return s.intBelow(100) < perCent }

// durationBetween returns a duration of the range.
func (s *stream) durationBetween(a, b time.Duration) time.Duration {
	if b <= a {
		return a
	}
	return a + time.Duration(s.next()%uint64(b-a))
}

func pickOne[T any](s *stream, list ...T) T { return list[s.intBelow(len(list))] }

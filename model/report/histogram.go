package report

import (
	"math/bits"
	"slices"
)

// histogram counts whole numbers from 0 up. It is exact below fineValues, and above that to one
// part in fineValues/2, with some hundred buckets at most whatever is counted.
type histogram struct {
	buckets map[int32]int64
	count   int64
	most    int64
}

const (
	fineBits   = 8
	fineValues = 1 << fineBits
)

// bucketOf is the bucket of a number.
func bucketOf(n int64) int32 {
	if n < fineValues {
		return int32(max(n, 0))
	}
	shift := bits.Len64(uint64(n)) - fineBits
	return int32(shift)*(fineValues/2) + int32(n>>shift)
}

// lowestOf is the smallest number of a bucket.
func lowestOf(bucket int32) int64 {
	if bucket < fineValues {
		return int64(bucket)
	}
	shift := (bucket - fineValues/2) / (fineValues / 2)
	return int64(bucket-shift*(fineValues/2)) << shift
}

func (h *histogram) add(n int64) {
	if h.buckets == nil {
		h.buckets = map[int32]int64{}
	}
	h.buckets[bucketOf(n)]++
	h.count++
	h.most = max(h.most, n)
}

// quantile is the smallest number that a part of all numbers do not exceed; 0 of no numbers.
func (h *histogram) quantile(part float64) int64 {
	order := make([]int32, 0, len(h.buckets))
	for b := range h.buckets {
		order = append(order, b)
	}
	slices.Sort(order)
	left := int64(part * float64(h.count))
	if float64(left) < part*float64(h.count) {
		left++
	}
	left = max(left, 1)
	for _, b := range order {
		if left -= h.buckets[b]; left <= 0 {
			return lowestOf(b)
		}
	}
	return 0
}

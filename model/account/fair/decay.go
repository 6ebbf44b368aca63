package fair

import "time"

// least is the smallest normal float64: usage that once was more than nothing never
// becomes nothing by decay.
const least = 0x1p-1022

// WeekHalfLife is the half-life where the policy says none.
const WeekHalfLife = 7 * 24 * time.Hour

// Remains is the part of usage that is left after a second: 1 − 0.693 ∕ half-life, as
// Slurm has it (0.693, not the logarithm of 2). A half-life of 0 is WeekHalfLife; a
// negative one lets nothing decay.
func Remains(halfLife time.Duration) float64 {
	switch {
	case halfLife < 0:
		return 1
	case halfLife == 0:
		halfLife = WeekHalfLife
	}
	seconds := float64(max(int64(halfLife/time.Second), 1))
	return 1 - float64(0.693/seconds)
}

// powerOf is x to the n-th for n ≥ 0, by squaring: the same on every machine, which
// math.Pow is not. It is never less than least.
func powerOf(x float64, n int64) float64 {
	p := 1.0
	for ; n > 0; n >>= 1 {
		if n&1 != 0 {
			p = float64(p * x)
		}
		x = float64(x * x)
	}
	return max(p, least)
}

// powerSum is the sum of the first n powers of a number from 0 to 1, without the power of zero.
func powerSum(x float64, n int64) (sum float64) {
	for block := x; n > 0; n >>= 1 { // the sum of a block of powers, as many as x is one of
		if n&1 != 0 {
			sum = block + float64(x*sum)
		}
		block += float64(x * block)
		x = float64(x * x)
	}
	return sum
}

// decayedUsage is what is left of usage.
func decayedUsage(usage, part float64) float64 {
	if usage <= 0 {
		return usage
	}
	return max(float64(usage*part), least)
}

// decayedSeconds is the seconds of a job's run as they count at the end of the interval in
// which it ran: they have decayed for as long as they are.
func decayedSeconds(remains float64, seconds int64) float64 {
	return float64(float64(seconds) * powerOf(remains, seconds))
}

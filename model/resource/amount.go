// Package resource counts what jobs ask for and nodes have: amounts with units,
// vectors of them, and arithmetic that saturates instead of wrapping.
//
// The package is pure and imports the standard library alone. It knows nothing
// of jobs or nodes, and it does not parse what users write: front ends do.
package resource

import (
	"math"
	"strconv"
)

// Amount is a quantity of one resource in that resource's own unit (see the
// fields of Vector). Zero means none. All arithmetic saturates at Unlimited and
// at -Unlimited, so a sum of quotas never wraps into a small number.
type Amount int64

// Unlimited is larger than any real amount and absorbs addition.
const Unlimited Amount = math.MaxInt64

// Add returns a+b, saturating.
func (a Amount) Add(b Amount) Amount {
	s := a + b
	switch {
	case a > 0 && b > 0 && s < 0:
		return Unlimited
	case a < 0 && b < 0 && (s >= 0 || s < -Unlimited):
		return -Unlimited
	}
	return s
}

// Sub returns a-b, saturating. Unlimited minus anything finite stays Unlimited.
func (a Amount) Sub(b Amount) Amount {
	if a == Unlimited && b != Unlimited {
		return Unlimited
	}
	if b < -Unlimited {
		return a.Add(Unlimited)
	}
	return a.Add(-b)
}

// Mul returns a*n, saturating.
func (a Amount) Mul(n int) Amount {
	if a == 0 || n == 0 {
		return 0
	}
	p := a * Amount(n)
	if p/Amount(n) != a || p < -Unlimited {
		if (a > 0) == (n > 0) {
			return Unlimited
		}
		return -Unlimited
	}
	return p
}

// DivUp returns a/n rounded towards plus infinity; n must be positive.
func (a Amount) DivUp(n Amount) Amount {
	q := a / n
	if a%n > 0 {
		q++
	}
	return q
}

// Units of CPU and memory.
const (
	MilliCPU Amount = 1       // unit of Vector.CPU
	OneCPU   Amount = 1000    // one logical CPU
	KiB      Amount = 1 << 10 // bytes
	MiB      Amount = 1 << 20 // bytes
	GiB      Amount = 1 << 30 // bytes
	TiB      Amount = 1 << 40 // bytes
)

// CPUs returns n whole CPUs as an Amount of Vector.CPU.
func CPUs(n int) Amount { return OneCPU.Mul(n) }

// FormatCPU prints an amount of CPU: "8", "0.5".
func FormatCPU(a Amount) string {
	return strconv.FormatFloat(float64(a)/float64(OneCPU), 'f', -1, 64)
}

// FormatBytes prints a byte count with one binary unit: "512 MiB", "1.5 GiB".
func FormatBytes(a Amount) string {
	if a == Unlimited {
		return "unlimited"
	}
	units := []struct {
		size Amount
		name string
	}{{TiB, "TiB"}, {GiB, "GiB"}, {MiB, "MiB"}, {KiB, "KiB"}}
	for _, u := range units {
		if a >= u.size {
			return strconv.FormatFloat(math.Round(float64(a)/float64(u.size)*10)/10, 'f', -1, 64) + " " + u.name
		}
	}
	return strconv.FormatInt(int64(a), 10) + " B"
}

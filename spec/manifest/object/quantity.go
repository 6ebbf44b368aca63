package object

import (
	"math/big"
	"regexp"
	"strconv"
	"strings"
)

// Quantity is an amount as Kubernetes writes it: 2, "500m", 64Gi, 1e3. Empty: none.
type Quantity string

// quantityForm is a number with a suffix or an exponent. Kubernetes refuses anything else.
var quantityForm = regexp.MustCompile(`^([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+))([eE][+-]?[0-9]{1,3}|[KMGTPE]i|[numkMGTPE])?$`)

var binarySuffixes, decimalSuffixes = "KMGTPE", map[string]int{"n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}

// parse returns the exact amount.
func (q Quantity) parse() (*big.Rat, bool) {
	m := quantityForm.FindStringSubmatch(string(q))
	if m == nil || len(q) > 64 {
		return nil, false
	}
	number, ok := new(big.Rat).SetString(m[1])
	if !ok {
		return nil, false
	}
	suffix, power := m[2], 0
	switch {
	case suffix == "":
		return number, true
	case strings.HasSuffix(suffix, "i"):
		bits := uint(strings.IndexByte(binarySuffixes, suffix[0])+1) * 10
		return number.Mul(number, new(big.Rat).SetInt(new(big.Int).Lsh(big.NewInt(1), bits))), true
	case len(suffix) > 1: // an exponent
		n, err := strconv.Atoi(suffix[1:])
		if err != nil || n > 30 || n < -30 {
			return nil, false
		}
		power = n
	default:
		power = decimalSuffixes[suffix]
	}
	scale := new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(max(power, -power))), nil))
	if power < 0 {
		return number.Quo(number, scale), true
	}
	return number.Mul(number, scale), true
}

// Valid reports whether it is an amount.
func (q Quantity) Valid() bool {
	_, ok := q.parse()
	return ok
}

// Value is the amount in whole units, rounded up, as Kubernetes rounds: bytes of memory, pieces
// of a device. An amount that is none, or too large for an int64, is not ok.
func (q Quantity) Value() (n int64, ok bool) { return q.scaled(1) }

// Milli is the amount in thousandths, rounded up: of CPUs.
func (q Quantity) Milli() (n int64, ok bool) { return q.scaled(1000) }

func (q Quantity) scaled(by int64) (int64, bool) {
	r, ok := q.parse()
	if !ok {
		return 0, false
	}
	r.Mul(r, new(big.Rat).SetInt64(by))
	whole, rest := new(big.Int).QuoRem(r.Num(), r.Denom(), new(big.Int))
	if rest.Sign() > 0 {
		whole.Add(whole, big.NewInt(1))
	}
	if rest.Sign() < 0 {
		whole.Sub(whole, big.NewInt(1))
	}
	return whole.Int64(), whole.IsInt64()
}

// IntOrString is a number, or a text such as 25% or the name of a port. Both are empty where
// there is none.
type IntOrString struct {
	Int    int64
	Text   string // empty if it is a number
	Number bool
}

// Given reports whether there is a value.
func (v IntOrString) Given() bool { return v.Number || v.Text != "" }

// String is the value as it was written.
func (v IntOrString) String() string {
	if v.Number {
		return strconv.FormatInt(v.Int, 10)
	}
	return v.Text
}

package rest

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/model/job"
)

// number is one that slurmrestd writes as 7, "7", null or {"set":true,"infinite":false,
// "number":7}, depending on its version and the field. One that is not set, is infinite or
// makes no sense counts as 0, with set false.
type number struct {
	set bool
	n   float64
}

// UnmarshalJSON is json.Unmarshaler's. It never fails: what cannot be read is not set.
func (x *number) UnmarshalJSON(b []byte) error {
	*x = number{}
	switch b[0] {
	case '{':
		var o struct {
			Set      *bool    `json:"set"`
			Infinite bool     `json:"infinite"`
			Number   *float64 `json:"number"`
		}
		if json.Unmarshal(b, &o) == nil && o.Number != nil && !o.Infinite && (o.Set == nil || *o.Set) {
			*x = number{true, *o.Number}
		}
	case '"':
		var s string
		if json.Unmarshal(b, &s) == nil {
			if n, err := strconv.ParseFloat(strings.TrimSpace(s), 64); err == nil {
				*x = number{true, n}
			}
		}
	default:
		var n *float64
		if json.Unmarshal(b, &n) == nil && n != nil {
			*x = number{true, *n}
		}
	}
	return nil
}

// integerBelow is the number where it is one that fits below a bound, else 0.
func (x number) integerBelow(below float64) int64 {
	if !x.set || x.n < 0 || x.n >= below {
		return 0
	}
	return int64(x.n)
}

// noValue is where Slurm's marks for "no value" and "infinite" in 32 bits begin.
const noValue = 0xfffffffd

func (x number) uint32() uint32 { return uint32(x.integerBelow(noValue)) }

// asTime is a time in seconds since 1970; 0 is none.
func (x number) asTime() time.Time {
	n := x.integerBelow(1 << 40)
	if n == 0 {
		return time.Time{}
	}
	return time.Unix(n, 0)
}

// text is a string, perhaps written as a number, null or {"name":"…"}.
type text string

// UnmarshalJSON is json.Unmarshaler's. It never fails.
func (t *text) UnmarshalJSON(b []byte) error {
	*t = ""
	var s string
	switch b[0] {
	case '"':
		_ = json.Unmarshal(b, &s)
	case '{', '[', 'n':
	default:
		s = string(bytes.TrimSpace(b))
	}
	*t = text(s)
	return nil
}

// words are ["A","B"], or "A", or "A,B".
type words []string

// UnmarshalJSON is json.Unmarshaler's. It never fails.
func (w *words) UnmarshalJSON(b []byte) error {
	*w = nil
	switch b[0] {
	case '[':
		var all []text
		if json.Unmarshal(b, &all) == nil {
			for _, t := range all {
				if t != "" {
					*w = append(*w, string(t))
				}
			}
		}
	case '"':
		var s string
		if json.Unmarshal(b, &s) == nil {
			for part := range strings.SplitSeq(s, ",") {
				if part = strings.TrimSpace(part); part != "" {
					*w = append(*w, part)
				}
			}
		}
	}
	return nil
}

// exit is how a job ended: the number of wait(2), or an object that says more.
type exit struct {
	known bool // it says something, and did not have to be guessed
	code  job.ExitCode
}

// UnmarshalJSON is json.Unmarshaler's. It never fails.
func (e *exit) UnmarshalJSON(b []byte) error {
	*e = exit{}
	if b[0] != '{' {
		var n number
		_ = n.UnmarshalJSON(b)
		s := n.integerBelow(1 << 32)
		*e = exit{n.set, job.ExitCode{Status: int(s >> 8 & 0xff), Signal: int(s & 0x7f)}}
		return nil
	}
	var o struct {
		Status words  `json:"status"`
		Return number `json:"return_code"`
		Signal struct {
			ID   number `json:"id"`
			Old  number `json:"signal_id"` // v0.0.38's name
			Name text   `json:"name"`
		} `json:"signal"`
	}
	if json.Unmarshal(b, &o) != nil {
		return nil
	}
	signal := o.Signal.ID.integerBelow(128)
	if signal == 0 {
		signal = o.Signal.Old.integerBelow(128)
	}
	*e = exit{o.Return.set || signal != 0, job.ExitCode{Status: int(o.Return.integerBelow(256)), Signal: int(signal)}}
	return nil
}

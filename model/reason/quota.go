package reason

import (
	"fmt"
	"strconv"
)

// quota is the clause of a quota that does not reach.
func (r Reason) quota() string {
	if r.Resource == "" {
		return fmt.Sprintf("quota of %s: no node has all flavors that it would take", r.Holder)
	}
	s := fmt.Sprintf("quota of %s: needs %s of flavor %s, uses %s of %s", r.Holder,
		quotaAmount(r.Resource, r.Need), r.Want, figure(r.Resource, r.Used), figure(r.Resource, r.Most))
	if r.Free > 0 {
		return s + ", could take " + figure(r.Resource, r.Free)
	}
	return s + ", nothing left to borrow"
}

// quotaAmount prints an amount of a resource as quotas count it.
func quotaAmount(resource string, n int64) string {
	switch resource {
	case "gpu":
		if n == 1000 {
			return "1 GPU"
		}
		return figure(resource, n) + " GPUs"
	case "node", "job", "task":
		return count(int(n), resource)
	}
	return quantity(resource, n)
}

// figure is an amount without its unit.
func figure(resource string, n int64) string {
	switch resource {
	case "gpu", "cpu":
		return strconv.FormatFloat(float64(n)/1000, 'f', -1, 64)
	case "memory", "disk":
		return bytes(n)
	}
	return strconv.FormatInt(n, 10)
}

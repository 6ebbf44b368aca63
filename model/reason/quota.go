package reason

import (
	"fmt"
	"strconv"
)

// quotaClause is the clause of a quota that does not reach.
func (r Reason) quotaClause() string {
	if r.Resource == "" {
		return fmt.Sprintf("quota of %s: no node has all flavors that it would take", r.Holder)
	}
	s := fmt.Sprintf("quota of %s: needs %s of flavor %s, uses %s of %s", r.Holder,
		quotaAmount(r.Resource, r.Need), r.Want, plainAmount(r.Resource, r.Used), plainAmount(r.Resource, r.Most))
	if r.Free > 0 {
		return s + ", could take " + plainAmount(r.Resource, r.Free)
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
		return plainAmount(resource, n) + " GPUs"
	case "node", "job", "task":
		return countText(int(n), resource)
	}
	return amountText(resource, n)
}

// plainAmount is an amount without its unit.
func plainAmount(resource string, n int64) string {
	switch resource {
	case "gpu", "cpu":
		return strconv.FormatFloat(float64(n)/1000, 'f', -1, 64)
	case "memory", "disk":
		return bytesText(n)
	}
	return strconv.FormatInt(n, 10)
}

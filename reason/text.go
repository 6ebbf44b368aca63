package reason

import (
	"fmt"
	"strconv"
	"time"
)

// quantity prints an amount of a resource with its unit.
func quantity(resource string, n int64) string {
	switch resource {
	case "cpu":
		return strconv.FormatFloat(float64(n)/1000, 'f', -1, 64) + " CPUs"
	case "memory", "disk":
		return bytes(n) + " " + resource
	case "nodes", "":
		return count(int(n), "node")
	case "gpu":
		return count(int(n), "GPU")
	}
	return fmt.Sprintf("%d %s", n, resource)
}

func bytes(n int64) string {
	const unit = 1024
	v, names := float64(n), []string{"B", "KiB", "MiB", "GiB", "TiB", "PiB"}
	i := 0
	for v >= unit && i < len(names)-1 {
		v, i = v/unit, i+1
	}
	return strconv.FormatFloat(float64(int64(v*10+0.5))/10, 'f', -1, 64) + " " + names[i]
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func clock(unix int64) string { return time.Unix(unix, 0).UTC().Format(time.RFC3339) }

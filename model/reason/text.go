package reason

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// amountText prints an amount of a resource with its unit.
func amountText(resource string, n int64) string {
	switch resource {
	case "cpu":
		return strconv.FormatFloat(float64(n)/1000, 'f', -1, 64) + " CPUs"
	case "memory", "disk":
		return bytesText(n) + " " + resource
	case "nodes", "":
		return countText(int(n), "node")
	case "gpu":
		return countText(int(n), "GPU")
	}
	if kind, typ, _ := strings.Cut(resource, ":"); kind == "gres/gpu" { // of a pool as a whole
		return countText(int(n), strings.TrimSpace(typ+" GPU"))
	}
	if resource == "pool/whole-nodes" {
		return countText(int(n), "whole node")
	}
	return fmt.Sprintf("%d %s", n, strings.TrimPrefix(resource, "gres/"))
}

func bytesText(n int64) string {
	const unit = 1024
	v, names := float64(n), []string{"B", "KiB", "MiB", "GiB", "TiB", "PiB"}
	i := 0
	for v >= unit && i < len(names)-1 {
		v, i = v/unit, i+1
	}
	return strconv.FormatFloat(float64(int64(v*10+0.5))/10, 'f', -1, 64) + " " + names[i]
}

func countText(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func timeText(unix int64) string { return time.Unix(unix, 0).UTC().Format(time.RFC3339) }

// deviceMemory is the text where parts of devices by memory are missing.
func (r Reason) deviceMemory() string {
	name := r.Resource
	if name == "gpu" {
		name = "GPU"
	}
	switch {
	case r.Code == TooLarge && r.Most < r.Used:
		return fmt.Sprintf("no %s has %s: the largest has %s", name, bytesText(r.Used), bytesText(r.Most))
	case r.Code == TooLarge:
		return fmt.Sprintf("needs %d times %s of a %s on one node, no node has room for them", r.Need, bytesText(r.Used), name)
	case r.Most < r.Used:
		return fmt.Sprintf("no %s has %s left: the most that one has is %s", name, bytesText(r.Used), bytesText(r.Most))
	}
	return fmt.Sprintf("needs %d times %s of a %s, room now: for %d", r.Need, bytesText(r.Used), name, r.Free)
}

// portClause is the clause of a fixed port that is not free.
func (r Reason) portClause(port string) string {
	switch {
	case r.Code == TooLarge:
		return "port " + port + " is not to be had on its nodes"
	case r.Job != 0:
		return fmt.Sprintf("port %s is taken on node %s by job %d", port, r.Want, r.Job)
	}
	return "port " + port + " is taken on every node that it could run on"
}

package discover

import (
	"regexp"
	"strconv"
	"strings"
)

// topo is the matrix of nvidia-smi topo -m between GPUs.
type topo struct {
	links map[[2]int]Link // by index of row and column
	numa  map[int]int     // NUMA affinity by GPU index
}

var (
	escape  = regexp.MustCompile("\x1b\\[[0-9;]*m")
	topoGPU = regexp.MustCompile(`^GPU(\d+)$`)
	spaces2 = regexp.MustCompile(`\t| {2,}`)
)

// parseTopo reads the matrix; rows of other devices and the legend are passed
// over. An entry that is not understood is an unknown link.
func parseTopo(out string) topo {
	t := topo{links: map[[2]int]Link{}, numa: map[int]int{}}
	var columns []int // GPU index of each column, in order
	numaColumn := -1
	for line := range strings.Lines(escape.ReplaceAllString(out, "")) {
		cells := topoCells(line)
		if len(cells) == 0 {
			continue
		}
		if columns == nil {
			columns, numaColumn = topoHeader(cells)
			continue
		}
		row, ok := gpuIndex(cells[0])
		if !ok {
			continue
		}
		for i, col := range columns {
			if i+1 < len(cells) && col != row {
				l := topoLink(cells[i+1])
				l.Peer = col
				t.links[[2]int{row, col}] = l
			}
		}
		if numaColumn > 0 && numaColumn < len(cells) {
			if n, err := strconv.Atoi(cells[numaColumn]); err == nil {
				t.numa[row] = n
			}
		}
	}
	return t
}

// topoCells splits a line. Columns are parted by tabs, or by runs of spaces
// where somebody expanded them; titles contain single spaces.
func topoCells(line string) []string {
	var cells []string
	for _, c := range spaces2.Split(strings.TrimSpace(line), -1) {
		if c = strings.TrimSpace(c); c != "" {
			cells = append(cells, c)
		}
	}
	return cells
}

// topoHeader gives the GPUs of the columns, and the place of the NUMA
// affinity in a row, which has its own name before the columns; -1 for none.
func topoHeader(cells []string) (columns []int, numaColumn int) {
	numaColumn = -1
	for i, c := range cells {
		if n, ok := gpuIndex(c); ok {
			columns = append(columns, n)
		}
		if c == "NUMA Affinity" {
			numaColumn = i + 1
		}
	}
	return columns, numaColumn
}

func gpuIndex(cell string) (int, bool) {
	m := topoGPU.FindStringSubmatch(cell)
	if m == nil {
		return 0, false
	}
	n, err := strconv.Atoi(m[1])
	return n, err == nil
}

// topoLink reads one entry. NV# is a number of NVLinks.
func topoLink(cell string) Link {
	switch cell {
	case "PIX", "PXB", "PSB":
		return Link{Path: PathSwitch}
	case "PHB":
		return Link{Path: PathHostBridge}
	case "NODE":
		return Link{Path: PathSameNUMA}
	case "SYS":
		return Link{Path: PathCrossNUMA}
	}
	if n, err := strconv.Atoi(strings.TrimPrefix(cell, "NV")); err == nil && strings.HasPrefix(cell, "NV") && n > 0 {
		return Link{Fabric: n}
	}
	return Link{}
}

// applyTopo gives the GPUs their links and, where sysfs does not say it,
// their NUMA node.
func applyTopo(gpus []GPU, t topo) {
	for i := range gpus {
		for j := range gpus {
			if l, ok := t.links[[2]int{gpus[i].Index, gpus[j].Index}]; ok {
				gpus[i].Links = append(gpus[i].Links, l)
			}
		}
		if n, ok := t.numa[gpus[i].Index]; ok {
			gpus[i].NUMA = n
		}
	}
}

package tables_test

// apart lists where a published cell is not reached within 0.3 points, with how far
// it may be.
//
// Clustering and packing allocate 0.5 to 1.3 points less here than was published, on
// seven workloads. Their scores are those of the published simulator, which leave
// requests without devices, and most nodes, equal; what it then did beyond taking
// the first name is not known. Fragmentation recorded along its runs differs from
// ours from the first requests on for these two, and hardly for the others.
//
// FGD on gpuspec33 falls 0.37 short at 130 % arrival: which shapes are typical is cut
// among equally frequent ones there, in an order that was not published.
var apart = map[string]map[string]float64{
	"default":     {"GpuClustering": 0.75, "GpuPacking": 0.85},
	"gpushare100": {"GpuClustering": 0.75, "GpuPacking": 0.85},
	"gpushare40":  {"GpuClustering": 0.7, "GpuPacking": 0.65},
	"gpuspec10":   {"GpuClustering": 1.2, "GpuPacking": 1.2},
	"gpuspec33":   {"GpuClustering": 1.5, "GpuPacking": 1.3, "FGD": 0.45},
	"multigpu20":  {"GpuClustering": 1.35, "GpuPacking": 1.3},
	"multigpu40":  {"GpuClustering": 0.7, "GpuPacking": 0.8},
}

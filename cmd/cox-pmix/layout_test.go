package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// layoutProgram prints what layout.go says of the headers' structures and names.
const layoutProgram = `#include <pmix_server.h>
#include <stddef.h>
#include <stdio.h>
int main(void) {
	printf("%zu %zu %zu %zu %zu %zu %zu %zu\n", sizeof(pmix_key_t), sizeof(pmix_nspace_t), sizeof(pmix_proc_t), sizeof(pmix_value_t),
		sizeof(pmix_info_t), sizeof(pmix_data_array_t), offsetof(pmix_info_t, value), offsetof(pmix_value_t, data));
	printf("%zu %zu %zu %zu\n", offsetof(pmix_server_module_t, abort), offsetof(pmix_server_module_t, fence_nb),
		offsetof(pmix_server_module_t, direct_modex), offsetof(pmix_server_module_t, spawn));
	printf("%d\n", sizeof(pmix_server_module_t) <= 8 * 64);
	printf("%d %d %d %d %d %d %d %d %d\n", PMIX_BOOL, PMIX_STRING, PMIX_INT, PMIX_UINT16, PMIX_UINT32, PMIX_INFO, PMIX_DATA_ARRAY, PMIX_PROC_RANK, PMIX_REGEX);
	printf("%d %d %d %d %d %u\n", PMIX_OPERATION_SUCCEEDED, PMIX_ERR_LOST_CONNECTION, PMIX_ERR_BAD_PARAM, PMIX_ERR_NOT_SUPPORTED, PMIX_ERR_NOT_FOUND, PMIX_RANK_WILDCARD);
	printf("%s %s %s %s %s %s\n", PMIX_HOSTNAME, PMIX_SERVER_NSPACE, PMIX_SERVER_RANK, PMIX_SERVER_TMPDIR, PMIX_SYSTEM_TMPDIR, PMIX_JOBID);
	printf("%s %s %s %s %s %s %s %s\n", PMIX_UNIV_SIZE, PMIX_JOB_SIZE, PMIX_MAX_PROCS, PMIX_NUM_NODES, PMIX_JOB_NUM_APPS, PMIX_LOCAL_SIZE, PMIX_NODE_SIZE, PMIX_LOCAL_PEERS);
	printf("%s %s %s %s %s %s %s %s\n", PMIX_LOCALLDR, PMIX_NODE_MAP, PMIX_PROC_MAP, PMIX_SPAWNED, PMIX_TMPDIR, PMIX_NSDIR, PMIX_PROCDIR, PMIX_TDIR_RMCLEAN);
	printf("%s %s %s %s %s %s %s %s %s %s %s\n", PMIX_PROC_DATA, PMIX_RANK, PMIX_APPNUM, PMIX_GLOBAL_RANK, PMIX_APP_RANK, PMIX_APPLDR, PMIX_APP_SIZE, PMIX_APP_INFO_ARRAY, PMIX_LOCAL_RANK, PMIX_NODE_RANK, PMIX_NODEID);
	return 0;
}
`

// TestLayout compares layout.go with the headers of this machine, if it has them, and of the
// folders that $COX_PMIX_HEADERS lists.
func TestLayout(t *testing.T) {
	folders := filepath.SplitList(os.Getenv("COX_PMIX_HEADERS"))
	if out, err := exec.Command("pkg-config", "--variable=includedir", "pmix").Output(); err == nil {
		folders = append(folders, strings.TrimSpace(string(out)))
	}
	if len(folders) == 0 {
		t.Skip("the headers of libpmix (libpmix-dev) are not installed")
	}
	want := fmt.Sprintln(sizeOfKey, sizeOfSpace, sizeOfProc, sizeOfValue, sizeOfInfo, sizeOfArray, valueInInfo, dataInValue) +
		fmt.Sprintln(8*placeAbort, 8*placeFence, 8*placeDirectGet, 8*placeSpawn) + "1\n" +
		fmt.Sprintln(typeBool, typeString, typeInt, typeUint16, typeUint32, typeInfo, typeArray, typeRank, typeRegex) +
		fmt.Sprintln(statusDone, lostConnection, -27, -47, -46, uint32(everyRank)) +
		fmt.Sprintln(keyHostName, keyServerSpace, keyServerRank, keyServerTmp, keySystemTmp, keyJobID) +
		fmt.Sprintln(keyUniverse, keyJobSize, keyMaxProcs, keyNumNodes, keyNumApps, keyLocalSize, keyNodeSize, keyLocalPeers) +
		fmt.Sprintln(keyLocalLeader, keyNodeMap, keyProcMap, keySpawned, keyTmpDir, keySpaceDir, keyProcDir, keyTmpCleaned) +
		fmt.Sprintln(keyProcData, keyRank, keyAppNumber, keyGlobalRank, keyAppRank, keyAppLeader, keyAppSize, keyAppArray, keyLocalRank, keyNodeRank, keyNodeID)
	for _, folder := range folders {
		dir := t.TempDir()
		source, program := filepath.Join(dir, "layout.c"), filepath.Join(dir, "layout")
		if err := os.WriteFile(source, []byte(layoutProgram), 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command("cc", "-w", "-I", folder, source, "-o", program).CombinedOutput(); err != nil {
			t.Skipf("the headers in %s cannot be compiled: %s", folder, out)
		}
		got, err := exec.Command(program).Output()
		if err != nil || string(got) != want {
			t.Errorf("%s says\n%snot\n%s(%v)", folder, got, want, err)
		}
	}
}

func TestParseVersion(t *testing.T) {
	for text, want := range map[string]string{
		"OpenPMIx 4.2.2rc2 (PMIx Standard: 4.1, Stable ABI: 0.0, Provisional ABI: 0.0)": "4.2.2rc2",
		"OpenPMIx 5.0.1 (PMIx Standard: 5.1)":                                           "5.0.1",
		"OpenPMIx 3.2.3 (PMIx Standard: 3.1)":                                           "it is version 3.2.3, and Coxswain serves versions 4 and 5",
		"OpenPMIx 6.1.0 (PMIx Standard: 5.1)":                                           "it is version 6.1.0, and Coxswain serves versions 4 and 5",
		"":                                                                              `its version "" cannot be read`,
	} {
		got, err := parseVersion(text)
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

package pmix

import (
	"fmt"
	"slices"
	"strings"
)

// Environment is what a program finds its PMIx server by: the variables that
// PMIx_server_setup_fork of libpmix 4 and 5 sets, for a server at a port of this machine.
// They are made here so that the server need not run before a program connects.
func Environment(o *Orders, port, rank int) []string {
	uri := fmt.Sprintf("%s.%d;tcp4://127.0.0.1:%d", o.Server, o.Self, port)
	out := []string{
		"PMIX_NAMESPACE=" + o.Space,
		fmt.Sprintf("PMIX_RANK=%d", rank),
		"PMIX_HOSTNAME=" + o.Nodes[o.Self].Name,
	}
	for _, version := range []string{"41", "4", "3", "21", "2"} {
		out = append(out, "PMIX_SERVER_URI"+version+"="+uri)
	}
	return append(out, modes...)
}

// SharedHost is what keeps the ranks of nodes apart that report one host name: Open MPI names
// the memory that the ranks of a node share after host, job and the rank on its node.
func SharedHost(o *Orders) []string {
	return []string{
		"OMPI_MCA_btl_vader_backing_directory=" + o.TempDir, // version 4
		"OMPI_MCA_btl_sm_backing_directory=" + o.TempDir,    // version 5
		"OMPI_MCA_osc_sm_backing_directory=" + o.TempDir,
	}
}

// LoopbackOnly has Open MPI connect nodes of one machine, which share its network, by the
// loopback interface. It leaves that out otherwise, and mixes up the addresses of the others.
const LoopbackOnly = "OMPI_MCA_btl_tcp_if_include=lo"

// PreferPMI has MPICH 4.3 and later take PMI where PMIx is offered too; otherwise it refuses
// to choose. A build without PMI takes PMIx all the same.
const PreferPMI = "MPIR_CVAR_PMI_VERSION=1"

// modes are how programs and server talk: as the same user, and by messages alone, since
// memory that is shared needs the same version of the library on both sides.
var modes = []string{
	"PMIX_SECURITY_MODE=native",
	"PMIX_BFROP_BUFFER_TYPE=PMIX_BFROP_BUFFER_NON_DESC",
	"PMIX_GDS_MODULE=hash",
}

// ServerEnvironment is the environment of the helper: that of a task, without what says where
// its own server is.
func ServerEnvironment(task []string) []string {
	out := slices.DeleteFunc(slices.Clone(task), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return OfServer(name) || name == "PMIX_MCA_gds" || name == "PMIX_MCA_psec" || strings.HasPrefix(name, "PMI_")
	})
	return append(out, "GOTRACEBACK=none", "PMIX_MCA_gds=hash", "PMIX_MCA_psec=native", modes[1])
}

// OfServer reports whether a variable says where a program's PMIx server is: each task has
// its own, or none.
func OfServer(name string) bool {
	switch name {
	case "PMIX_NAMESPACE", "PMIX_RANK", "PMIX_HOSTNAME", "PMIX_VERSION", "PMIX_SECURITY_MODE",
		"PMIX_BFROP_BUFFER_TYPE", "PMIX_GDS_MODULE", "PMIX_SYSTEM_TMPDIR":
		return true
	}
	return strings.HasPrefix(name, "PMIX_SERVER_")
}

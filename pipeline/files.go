package pipeline

import (
	"os"

	"tsimport/pipeline/rundir"
)

// files are what a load writes beside rows, all of it below the run folder or where the user says.
type files struct {
	folder  *rundir.Folder
	extras  *extras
	archive *archive // nil if nothing is archived
}

// open are the files that must be synced before a checkpoint says how far they go.
func (f *files) open() []*os.File {
	return append(append(f.folder.Files(), f.extras.files()...), f.archive.open()...)
}

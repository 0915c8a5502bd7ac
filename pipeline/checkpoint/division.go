package checkpoint

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"

	"example.com/tsimport/internal/atomicfile"
)

// DivisionFile is the file of a run folder that says how what is read was divided into parts, as a source.Origin says it.
const DivisionFile = "division.bin"

// KeepDivision keeps a division in the run folder, and its sum in the job, which is to be written afterwards. Nil keeps none.
func (j *Job) KeepDivision(dir string, division []byte) error {
	if division == nil {
		j.Division = ""
		return nil
	}
	if err := atomicfile.WriteBytes(filepath.Join(dir, DivisionFile), atomicfile.Options{Perm: 0o600}, division); err != nil {
		return fmt.Errorf("keep how the input is divided: %w", err)
	}
	j.Division = sumOf(division)
	return nil
}

// ReadDivision reads the division of a run, nil if it has none. It fails if the file is not the one that was kept.
func (j *Job) ReadDivision(dir string) ([]byte, error) {
	if j.Division == "" {
		return nil, nil
	}
	return readKept("how the input is divided", filepath.Join(dir, DivisionFile), j.Division)
}

// readKept reads a file that must have a sum.
func readKept(what, name, sum string) ([]byte, error) {
	text, err := os.ReadFile(name)
	if err == nil && sumOf(text) != sum {
		err = fmt.Errorf("%s: %w", name, errDamaged)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", what, err)
	}
	return text, nil
}

func sumOf(division []byte) string {
	sum := sha256.Sum256(division)
	return hex.EncodeToString(sum[:])
}

"""What the site needs beside the pages: links, formulas, the reference, the gallery, a check."""

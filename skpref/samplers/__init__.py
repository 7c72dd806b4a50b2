from skpref.samplers._gibbs import GibbsChains, gibbs
from skpref.samplers._hmc import HMCChains, hmc
from skpref.samplers._liness import LinESSChains, liness
from skpref.samplers.truncated_normal import truncated_normal

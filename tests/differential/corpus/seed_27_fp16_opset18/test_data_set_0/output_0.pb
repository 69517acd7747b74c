
Blayernormalization_162J0¦.ºJ°¶’1“0¹Ê.ğ3­3­ºL3`B…:B5x´1;76ø%nª[¶O=u)áº

BmemoryJ À=¨¼ð<L:T½R5L2H;ÀB9è;s»ª8K¸Eº¼­